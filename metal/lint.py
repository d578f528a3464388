"""Faults of a kernel text that the other targets would accept but Metal would not, and the reverse.

The texts are compiled here by C++ and CUDA compilers only, so what they let pass is looked for by
rule: one function a rule, all in `RULES`. A text is a kernel's body, or a header of helper
functions (`body=False`). Run `python -m metal.lint [FILE ...]`; without files it reads all
shipped texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TYPES: Final = (
    r"(?:unsigned\s+\w+|float|half|bfloat|bfloat16_t|float16_t|int|uint|short|ushort|char|uchar|"
    r"long|ulong|bool|size_t|u?int(?:8|16|32|64)_t|auto|T|double)"
)
SPACE: Final = r"(?:device|constant|threadgroup|thread)"

MATH_WORDS: Final = """
abs acos acosh asin asinh atan atan2 atanh ceil clamp clz copysign cos cosh cospi cross ctz
distance dot exp exp10 exp2 fabs fdim floor fma fmax fmin fmod fract frexp ilogb isfinite isinf
isnan isnormal ldexp length log log10 log2 max max3 mad24 min min3 mix modf mulhi normalize popcount
pow powr rint rotate round rsqrt saturate select sign signbit sin sincos sinh sinpi smoothstep sqrt
step tan tanh tanpi trunc nextafter
"""
MATH: Final = tuple(MATH_WORDS.split())
"""Functions that Metal has in its namespace. Unqualified, C++ may find another one."""

FOREIGN_WORDS: Final = """
threadIdx blockIdx blockDim gridDim warpSize __syncthreads __shared__ __device__ __global__
__restrict__ __ldg __forceinline__ atomicAdd printf fprintf malloc free calloc memcpy memset
new delete throw try catch goto virtual dynamic_cast typeid thread_local asm static
make_uint3 dim3 assert nullptr_t
"""
FOREIGN: Final = tuple(FOREIGN_WORDS.split())
"""What C++ or CUDA has and Metal has not (`static`: no static locals in a Metal function)."""

ONLY_METAL: Final = re.compile(
    r"\b(?:threadgroup\w*|simd_\w+|simdgroup_\w+|quad_\w+|atomic_\w+|thread_index_in_\w+|"
    r"threads_per_\w+|thread_position_in_threadgroup|mem_flags)\b"
)

UNSUPPORTED: Final = re.compile(
    r"\b(?:long\s+double|unsigned\s+long\s+long|long\s+long|double[234]?|wchar_t|__int128|__half2?|"
    r"__nv_bfloat16\w*|nv_bfloat16|_Float16|__bf16|string|vector|u?longlong[1234]?)\b"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: the line, the rule that it breaks, and what to write instead."""

    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.line}: {self.rule}: {self.message}"


Found = Iterator[tuple[int, str]]
"""Offset in the text and message."""


def lint(text: str, *, body: bool = True) -> list[Finding]:
    """All faults of one text, by line. An empty list means that none was found."""
    bare = _blank_comments(text)
    found = []
    for rule, check in RULES.items():
        if rule in BODY_ONLY and not body:
            continue
        for offset, message in check(bare):
            found.append(Finding(bare.count("\n", 0, offset) + 1, rule, message))
    return sorted(found, key=lambda finding: (finding.line, finding.rule))


def _blank_comments(text: str) -> str:
    """Comments and strings as blanks, so that offsets and lines stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def _address_space(text: str) -> Found:
    spaces = rf"({SPACE}\s+)?(?:const\s+)?({SPACE}\s+)?"
    declarator = r"\s*(?:const\s*)?[*&]+\s*(?:const\s+)?(\w+)\s*(?=[=;,)\[:({])"
    pattern = rf"{spaces}\b{TYPES}{declarator}"
    for match in re.finditer(pattern, text):
        if not (match.group(1) or match.group(2)) and not _is_operand(text, match):
            name = match.group(3)
            yield (
                match.start(),
                f"`{name}` is a pointer or reference: name its address space "
                "(device, constant, thread)",
            )


def _is_operand(text: str, match: re.Match[str]) -> bool:
    """Whether a match such as `T * x` stands inside an expression, where no type can stand."""
    before = text[: match.start()].rstrip()
    return before.endswith(tuple("=+-*/%<>!&|^?[")) and not before.endswith("<")


def _input_pointer(text: str) -> Found:
    pattern = (
        rf"\b(?:const\s+device|device\s+const|const\s+constant|constant)\s+(?:const\s+)?{TYPES}"
        r"\s*\*\s*(?:const\s+)?(\w+)\s*="
    )
    for match in re.finditer(pattern, text):
        yield (
            match.start(),
            f"`{match.group(1)}` fixes an input's address space, but MLX passes inputs of fewer "
            "than 8 elements as constant and others as device: index the input itself",
        )


def _double_literal(text: str) -> Found:
    pattern = r"(?<![\w.])((?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(\w*)"
    for match in re.finditer(pattern, text):
        if match.group(2) not in ("f", "F", "h", "H"):
            yield match.start(), f"`{match.group()}` is a double: write `{match.group(1)}f`"


def _unsupported_type(text: str) -> Found:
    for match in UNSUPPORTED.finditer(text):
        word = " ".join(match.group().split())
        yield match.start(), f"Metal has no type `{word}`"


def _uint3(text: str) -> Found:
    for match in re.finditer(r"\b(?:make_)?uint3\b", text):
        yield (
            match.start(),
            "a uint3 has 16 bytes in Metal and 12 elsewhere, and other constructors: "
            "use single uints",
        )
    for match in re.finditer(r"\bthread_position_in_grid\b(?!\s*\.\s*[xyz]\b)", text):
        yield match.start(), "read one component: thread_position_in_grid.x, .y or .z"


def _namespace(text: str) -> Found:
    names = "|".join(MATH)
    for match in re.finditer(rf"(?<![\w:.>])(?:::\s*)?({names})\s*\(", text):
        yield match.start(), f"write metal::{match.group(1)}"
    for match in re.finditer(rf"(?<![\w:.>])(?:::\s*)?((?:{names})(?:f|l))\s*\(", text):
        if match.group(1) not in MATH:
            yield match.start(), f"`{match.group(1)}` is C's: write metal::{match.group(1)[:-1]}"
    for match in re.finditer(r"\bmetal\s*::\s*as_type\b", text):
        yield match.start(), "as_type is an operator of Metal, in no namespace"
    for match in re.finditer(r"\b(?:std|cuda|thrust)\s*::\s*(\w+)|\b(__builtin_\w+)", text):
        yield match.start(), f"Metal has no `{' '.join(match.group().split())}`"


def _foreign(text: str) -> Found:
    for match in re.finditer(rf"(?<![\w#])(?:{'|'.join(FOREIGN)})\b", text):
        yield match.start(), f"Metal has no `{match.group()}` here"
    for match in re.finditer(r"#\s*include\b[^\n]*", text):
        yield match.start(), "a text includes nothing; what it needs is in the preludes"


def _only_metal(text: str) -> Found:
    for match in ONLY_METAL.finditer(text):
        yield match.start(), f"the host and CUDA have no `{match.group()}`"


def _lambda(text: str) -> Found:
    for match in re.finditer(r"(?<=[=(,])\s*\[[&=\w\s,]*\]\s*(?:\(|\{)", text):
        yield match.start(), "Metal has no lambda expressions"


def _array_size(text: str) -> Found:
    for match in re.finditer(rf"\b{TYPES}\s+(\w+)\s*\[\s*([A-Za-z_]\w*)\s*\]\s*[;=]", text):
        if not match.group(2).isupper():
            yield (
                match.start(),
                f"`{match.group(1)}` needs a constant size, given `{match.group(2)}`",
            )


def _recursion(text: str) -> Found:
    """Functions of a header that reach themselves through calls."""
    calls: dict[str, set[str]] = {}
    places: dict[str, int] = {}
    functions = list(_functions(text))
    names = {name for name, _, _ in functions}
    for name, offset, inside in functions:
        found = set(re.findall(r"\b(\w+)\s*(?:<[\w\s,]*>\s*)?\(", inside)) & names
        calls[name] = calls.get(name, set()) | found
        places.setdefault(name, offset)
    for name, offset in places.items():
        if name in _reachable(name, calls):
            yield offset, f"`{name}` calls itself, directly or through others"


def _functions(text: str) -> Iterator[tuple[str, int, str]]:
    """Name, offset and inside of every function that is defined in a text."""
    for match in re.finditer(r"\b[\w:<>*&]+\s+[*&]?\s*(\w+)\s*\(([^;{}]*)\)\s*\{", text):
        if match.group(1) in ("if", "for", "while", "switch", "return"):
            continue
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield match.group(1), match.start(), text[match.end() : end]


def _reachable(name: str, calls: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(calls.get(name, ()))
    while todo:
        other = todo.pop()
        if other not in seen:
            seen.add(other)
            todo += calls.get(other, ())
    return seen


def _guard(text: str) -> Found:
    """CUDA rounds the grid up to whole blocks: the first `if` must send extra threads away."""
    first = re.search(r"\bif\s*\(", text)
    guard = re.search(r"\breturn\s*;", text)
    store = re.search(r"\w\s*\[[^;=]*\]\s*[-+*/|&^]?=(?!=)", text)
    if first is None or guard is None or (store is not None and store.start() < guard.start()):
        yield 0, "no bounds check with `return;` before the first store"


RULES: Final[dict[str, Callable[[str], Found]]] = {
    "address-space": _address_space,
    "input-pointer": _input_pointer,
    "double-literal": _double_literal,
    "unsupported-type": _unsupported_type,
    "uint3": _uint3,
    "metal-namespace": _namespace,
    "foreign": _foreign,
    "only-metal": _only_metal,
    "lambda": _lambda,
    "array-size": _array_size,
    "recursion": _recursion,
    "guard": _guard,
}
BODY_ONLY: Final = ("guard",)


def main(paths: list[str]) -> int:
    """Print every fault as `file:line: rule: message`; the exit status is 1 when there is one."""
    files = [Path(p) for p in paths] or sorted((Path(__file__).parent / "src").glob("*.metal"))
    bad = 0
    for path in files:
        for finding in lint(path.read_text(encoding="utf-8"), body=path.suffix == ".metal"):
            print(f"{path}:{finding}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
