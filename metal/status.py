"""The status bits that kernels set, each with the sentence that a person reads.

Owns the one list of bits; kernels get them as `STATUS_<NAME>` macros made from this list, so a
number is written nowhere else. A status word is an unsigned 32-bit integer, 0 is good.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag


class StatusBit(IntFlag):
    """What `group_status` can find wrong with the positions of one sequence."""

    HOLE = 1
    ANCHOR = 2
    UNCOVERED = 4
    TWICE = 8
    FRONTIER = 16
    OUTSIDE = 32
    LONG_TAIL = 64


SENTENCES: dict[StatusBit, str] = {
    StatusBit.HOLE: "a group or the tail crosses a position hole",
    StatusBit.ANCHOR: "a group's anchor is not the position of its first row",
    StatusBit.UNCOVERED: "a position is in no group and not in the tail",
    StatusBit.TWICE: "a position is in two groups, or in a group and the tail, or stands twice",
    StatusBit.FRONTIER: "the tail does not end at the frontier",
    StatusBit.OUTSIDE: "a group reaches outside the live rows, or a position is negative",
    StatusBit.LONG_TAIL: "the tail holds a complete group",
}


class NonFinite(IntEnum):
    """Kinds that `find_nonfinite` tells apart."""

    FINITE = 0
    NAN = 1
    PLUS_INF = 2
    MINUS_INF = 3


NONFINITE_NAMES: dict[NonFinite, str] = {
    NonFinite.FINITE: "finite",
    NonFinite.NAN: "NaN",
    NonFinite.PLUS_INF: "+Inf",
    NonFinite.MINUS_INF: "-Inf",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A status word and the first part that set it, read for a person."""

    word: int
    bits: tuple[StatusBit, ...]
    unknown: int
    """Bits of the word that no name stands for; 0 unless a kernel is broken."""
    part: int | None
    """Number of the first failing group, `n_groups` for the tail, None when the word is 0."""
    n_groups: int

    def __bool__(self) -> bool:
        return self.word != 0

    def __str__(self) -> str:
        if not self.word:
            return "status 0: every position is in one group or in the tail"
        where = "the tail" if self.part == self.n_groups else f"group {self.part}"
        found = [SENTENCES[bit] for bit in self.bits]
        if self.unknown:
            found.append(f"unknown bits {self.unknown:#x}")
        return f"status {self.word:#x}, first at {where}: {'; '.join(found)}"


def decode(word: int, part: int, n_groups: int) -> Verdict:
    """Read a status word.

    Args:
        word: as `group_status` returned it, 0 to 2^32 - 1.
        part: the first failing part, -1 for none.
        n_groups: number of complete groups, which is also the number of the tail's part.
    """
    bits = tuple(bit for bit in StatusBit if word & bit)
    known = sum(int(bit) for bit in bits)
    return Verdict(word, bits, word & ~known, None if part < 0 else part, n_groups)


def macros() -> str:
    """The bits and kinds as C macros for the kernels' headers, the same text on every target."""
    lines = [f"#define STATUS_{bit.name} {int(bit)}u" for bit in StatusBit]
    lines += [f"#define KIND_{kind.name} {int(kind)}" for kind in NonFinite]
    return "\n".join(lines) + "\n"
