"""Whole compilation units from the kernel texts.

Metal and CUDA write the signature themselves (`mx.fast.metal_kernel`, `mx.fast.cuda_kernel`): they
get a header and a body. For the host the signature is written here in the same manner: inputs as
flat pointers, `NAME_shape` and `NAME_strides` only where the text names them, then `params`, then
the outputs.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from metal.kernels import KERNELS, Kernel
from metal.status import macros

PARAMS: Final = "params"
C_TYPES: Final = {
    "float32": "float",
    "float16": "float16_t",
    "bfloat16": "bfloat16_t",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "int32": "int",
    "uint64": "uint64_t",
}
CUDA_POSITION: Final = (
    "const uint3 thread_position_in_grid = make_uint3("
    "blockIdx.x * blockDim.x + threadIdx.x, "
    "blockIdx.y * blockDim.y + threadIdx.y, "
    "blockIdx.z * blockDim.z + threadIdx.z);\n"
)


def prelude(target: str) -> str:
    """The header of a target; Metal needs the macros alone."""
    if target == "metal":
        return macros()
    text = files("metal").joinpath("src", f"{target}_prelude.h").read_text(encoding="utf-8")
    return text + macros()


def body(kernel: Kernel, target: str) -> str:
    """The text that goes into the generated signature."""
    return CUDA_POSITION + kernel.text if target == "cuda" else kernel.text


def symbol(kernel: Kernel, element: str | None) -> str:
    """Name of the host function for one type of T."""
    return f"{kernel.name}_{element}" if element else kernel.name


def host_unit(kernels: dict[str, Kernel] | None = None) -> str:
    """All kernels for all their types as one C++ file."""
    parts = [prelude("host")]
    for kernel in (KERNELS if kernels is None else kernels).values():
        parts.append(_host_body(kernel))
        parts += [_host_entry(kernel, element) for element in kernel.element_types or (None,)]
    return "\n".join(parts)


def _host_body(kernel: Kernel) -> str:
    text = kernel.text
    arguments = []
    for name, dtype in kernel.types.items():
        arguments.append(f"const {C_TYPES.get(dtype, dtype)}* {name}")
        if f"{name}_shape" in text:
            arguments.append(f"const int* {name}_shape")
        if f"{name}_strides" in text:
            arguments.append(f"const int64_t* {name}_strides")
    arguments.append(f"const int* {PARAMS}")
    arguments += [f"{C_TYPES.get(dtype, dtype)}* {name}" for name, dtype in kernel.outputs.items()]
    arguments.append("const uint3 thread_position_in_grid")
    generic = "template <typename T>\n" if kernel.element_types else ""
    joined = ",\n    ".join(arguments)
    return f"{generic}static void body_{kernel.name}(\n    {joined}) {{\n{text}\n}}\n"


def _host_entry(kernel: Kernel, element: str | None) -> str:
    """`void NAME(inputs, shapes, strides, params, outputs, grid)` over a whole grid."""
    arguments = []
    for i, (name, dtype) in enumerate(kernel.types.items()):
        c_type = C_TYPES[element if dtype == "T" and element else dtype]
        arguments.append(f"static_cast<const {c_type}*>(inputs[{i}])")
        if f"{name}_shape" in kernel.text:
            arguments.append(f"shapes[{i}]")
        if f"{name}_strides" in kernel.text:
            arguments.append(f"strides[{i}]")
    arguments.append("params")
    for i, dtype in enumerate(kernel.outputs.values()):
        c_type = C_TYPES[element if dtype == "T" and element else dtype]
        arguments.append(f"static_cast<{c_type}*>(outputs[{i}])")
    generic = f"<{C_TYPES[element]}>" if element else ""
    joined = ",\n                    ".join([*arguments, "uint3{x, y, z}"])
    return f"""extern "C" void {symbol(kernel, element)}(
    const void* const* inputs, const int* const* shapes, const int64_t* const* strides,
    const int* params, void* const* outputs, const uint* grid) {{
    (void)shapes;
    (void)strides;
    for (uint z = 0; z < grid[2]; ++z) {{
        for (uint y = 0; y < grid[1]; ++y) {{
            for (uint x = 0; x < grid[0]; ++x) {{
                body_{kernel.name}{generic}(
                    {joined});
            }}
        }}
    }}
}}
"""
