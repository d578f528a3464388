"""The list of status bits and the words a person reads."""

from __future__ import annotations

import pytest

from metal import status
from metal.status import SENTENCES, StatusBit


def test_every_bit_has_one_sentence_and_its_own_place():
    assert set(SENTENCES) == set(StatusBit)
    assert len(set(SENTENCES.values())) == len(StatusBit)
    assert [int(bit) for bit in StatusBit] == [1 << i for i in range(len(StatusBit))]


def test_zero_is_good():
    verdict = status.decode(0, -1, 3)
    assert not verdict
    assert verdict.part is None
    assert str(verdict).startswith("status 0:")


@pytest.mark.parametrize("bit", list(StatusBit))
def test_each_bit_is_read_back_with_its_sentence(bit):
    verdict = status.decode(int(bit), 2, 5)
    assert verdict
    assert verdict.bits == (bit,)
    assert "group 2" in str(verdict)
    assert SENTENCES[bit] in str(verdict)


def test_the_part_after_the_groups_is_the_tail():
    assert "the tail" in str(status.decode(int(StatusBit.FRONTIER), 5, 5))


def test_unknown_bits_are_shown_not_dropped():
    verdict = status.decode(0x80000001, 0, 1)
    assert verdict.unknown == 0x80000000
    assert "0x80000000" in str(verdict)


def test_kernel_macros_come_from_the_list():
    lines = status.macros().splitlines()
    assert "#define STATUS_HOLE 1u" in lines
    assert "#define KIND_MINUS_INF 3" in lines
