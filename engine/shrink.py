"""Reduce a failing script to a minimal one: delta debugging over its steps, then over each step.

Pure: knows steps only through the caller's functions. The result is 1-minimal: without any one of
its steps, or with any of its offered simplifications, the failure is gone.
Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002 (ddmin).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Step = TypeVar("Step")


@dataclass(frozen=True, slots=True)
class Shrunk(Generic[Step]):
    """A minimal failing script and what it cost."""

    steps: tuple[Step, ...]
    tries: int
    """Scripts that were tried, repeats not counted."""
    complete: bool
    """False when `limit` ended the search early; the script still fails but may not be minimal."""


class _Spent(Exception):
    """The limit of tries is reached."""


class _Search(Generic[Step]):
    """Remembers every script that was tried, by the text of its steps."""

    def __init__(self, fails: Callable[[tuple[Step, ...]], bool], limit: int) -> None:
        self._fails = fails
        self._limit = limit
        self._known: dict[str, bool] = {}
        self.best: tuple[Step, ...] = ()

    @property
    def tries(self) -> int:
        return len(self._known)

    def fails(self, steps: Sequence[Step]) -> bool:
        script = tuple(steps)
        key = repr(script)
        if key not in self._known:
            if len(self._known) >= self._limit:
                raise _Spent
            self._known[key] = self._fails(script)
        if self._known[key]:
            self.best = script
        return self._known[key]


def shrink(
    steps: Sequence[Step],
    fails: Callable[[tuple[Step, ...]], bool],
    simpler: Callable[[tuple[Step, ...]], Iterable[tuple[Step, ...]]] = lambda steps: (),
    limit: int = 2_000,
) -> Shrunk[Step]:
    """The smallest script found that still fails.

    Args:
        steps: a script for which `fails` is true.
        fails: whether a script shows the failure; asked at most once a script.
        simpler: scripts of the same length or shorter that are simpler than the given one, the
            boldest first; each must be strictly simpler, else the search would not end.
        limit: most scripts to try.
    Raises: ValueError when `steps` does not fail.
    """
    search = _Search(fails, limit)
    if not search.fails(steps):
        raise ValueError("the script does not fail")
    try:
        script = tuple(steps)
        while True:
            script = _fewer(script, search)
            shorter = next((s for s in simpler(script) if search.fails(s)), None)
            if shorter is None:
                return Shrunk(script, search.tries, True)
            script = shorter
    except _Spent:
        return Shrunk(search.best, search.tries, False)


def _fewer(steps: tuple[Step, ...], search: _Search[Step]) -> tuple[Step, ...]:
    """ddmin: leave out ever smaller pieces until no single step can be left out."""
    pieces = 2
    while len(steps) >= 1:
        size = max(1, -(-len(steps) // pieces))
        for start in range(0, len(steps), size):
            rest = steps[:start] + steps[start + size :]
            if rest != steps and search.fails(rest):
                steps, pieces = rest, max(2, pieces - 1)
                break
        else:
            if size == 1:
                return steps
            pieces = min(len(steps), pieces * 2)
    return steps
