"""Arithmetic of a run: the consecutive live positions of one sequence, its groups and its tail.

Integers only. Knows no sequences, no cells and no ops; judging arrays that come from outside is
in `engine.validate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.validate import Partition, Ranges, Validation, partition, validate

__all__ = ["EMPTY", "Partition", "Ranges", "Run", "Validation", "partition", "validate"]


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """Positions `start` (in) to `stop` (out), each its predecessor plus one.

    The empty run is always `Run(0, 0)`, so equality of runs is equality of what is live.
    Raises: ValueError when `stop` is below `start`.
    """

    start: int = 0
    stop: int = 0

    def __post_init__(self) -> None:
        if self.stop < self.start:
            raise ValueError(f"a run can't stop at {self.stop}, before its start {self.start}")
        if self.start == self.stop != 0:
            object.__setattr__(self, "start", 0)
            object.__setattr__(self, "stop", 0)

    def __bool__(self) -> bool:
        return self.stop > self.start

    def __contains__(self, position: object) -> bool:
        return isinstance(position, int) and self.start <= position < self.stop

    @property
    def n(self) -> int:
        """Number of live positions."""
        return self.stop - self.start

    @property
    def first(self) -> int | None:
        """First live position, None when empty."""
        return self.start if self else None

    @property
    def frontier(self) -> int | None:
        """Last live position, None when empty; the only legal next append is one beyond."""
        return self.stop - 1 if self else None

    def as_pair(self) -> tuple[int, int] | None:
        """First and last position, both in, as JSON prints a run; None when empty."""
        return (self.start, self.stop - 1) if self else None

    def n_groups(self, group_size: int) -> int:
        """Complete groups, counted from the first live position."""
        return self.n // group_size

    def n_tail(self, group_size: int) -> int:
        """Positions behind the last complete group, 0 to `group_size - 1`."""
        return self.n % group_size

    def complete(self, group_size: int) -> Run:
        """The positions that complete groups cover."""
        return Run(self.start, self.start + self.n_groups(group_size) * group_size)

    def tail(self, group_size: int) -> Run:
        """The positions behind the last complete group."""
        return Run(self.start + self.n_groups(group_size) * group_size, self.stop)

    def group(self, number: int, group_size: int) -> Run:
        """Positions of complete group `number`, from 0. Raises: IndexError when there is none."""
        if not 0 <= number < self.n_groups(group_size):
            raise IndexError(f"group {number} of {self.n_groups(group_size)}")
        start = self.start + number * group_size
        return Run(start, start + group_size)

    def groups(self, group_size: int) -> Iterator[Run]:
        """Every complete group, oldest first."""
        return (self.group(i, group_size) for i in range(self.n_groups(group_size)))

    def clip(self, start: int | None, stop: int | None) -> Run:
        """The live part of a half-open range; None is the open end."""
        low = self.start if start is None else max(start, self.start)
        high = self.stop if stop is None else min(stop, self.stop)
        return Run(low, high) if low < high else EMPTY

    def drop_front(self, count: int) -> Run:
        """Without its `count` oldest positions."""
        return Run(self.start + count, self.stop)

    def truncated(self, to: int) -> Run:
        """Without every position >= `to`."""
        return Run(self.start, to)

    def shifted(self, delta: int) -> Run:
        """Every position plus `delta`; the empty run stays empty."""
        return Run(self.start + delta, self.stop + delta) if self else self


EMPTY = Run(0, 0)
