"""Whole compilation units: the shipped text stands in them as it is, behind its prelude."""

from __future__ import annotations

import pytest

from metal import source
from metal.kernels import KERNELS
from metal.status import StatusBit


@pytest.mark.parametrize("name", list(KERNELS))
@pytest.mark.parametrize("target", ["metal", "cuda"])
def test_a_body_is_the_shipped_text(name, target):
    text = KERNELS[name].text
    body = source.body(KERNELS[name], target)
    assert body.endswith(text)
    assert (body == text) == (target == "metal")


def test_the_host_unit_holds_every_text_and_every_type():
    unit = source.host_unit()
    for kernel in KERNELS.values():
        assert unit.count(kernel.text) == 1
        for element in kernel.element_types or (None,):
            assert f'extern "C" void {source.symbol(kernel, element)}(' in unit


@pytest.mark.parametrize("target", ["metal", "cuda", "host"])
def test_every_target_gets_every_status_bit(target):
    header = source.prelude(target)
    for bit in StatusBit:
        assert f"#define STATUS_{bit.name} {int(bit)}u\n" in header


def test_strides_are_passed_only_where_a_text_reads_them():
    unit = source.host_unit({"pool_groups": KERNELS["pool_groups"]})
    assert "const int64_t* raw_strides" in unit
    assert "raw_shape" not in unit
    assert "x_strides" not in source.host_unit({"linear": KERNELS["linear"]})


def test_only_kernels_that_read_strides_ask_for_them():
    for kernel in KERNELS.values():
        assert kernel.strided == ("_strides" in kernel.text), kernel.name


@pytest.mark.parametrize("name", list(KERNELS))
def test_a_head_comment_names_inputs_outputs_and_grid(name):
    kernel = KERNELS[name]
    head = kernel.text.split("\n\n")[0]
    assert head.startswith(f"// {name}: ")
    for word in ("inputs", "params", "output", "grid", *kernel.types, *kernel.outputs):
        assert word in head, word
