"""The three families of errors, their fields and the one sentence each becomes.

`Rejected` and `StepFailed` promise that nothing public changed. `InvariantBroken` is a bug of
ours: publishing stops and the state is kept for inspection. `Unreadable` and `Malformed` are
about files that a person hands in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.printable import plain
from engine.terms import FailKind, Reason

LONGEST_PART = 1000
"""Characters of each part of a sentence about a file."""


class EngineError(Exception):
    """Base of everything that the engine raises on purpose."""


@dataclass(eq=False)
class Rejected(EngineError):
    """A request was illegal; no owner changed."""

    op: str
    seq: int
    reason: Reason
    expected: int | None = None
    """Logical position (or count, or limit) that would have been legal."""
    given: int | None = None
    nearest: int | None = None
    """Nearest legal target of this op, where one exists."""
    op_number: int = 0
    """Number of the op in its scenario or session, from 0."""
    detail: str = ""

    def __str__(self) -> str:
        text = f"{self.op} on sequence {self.seq}: {self.reason}"
        if self.expected is not None:
            # of an id the bound alone would not say that there are others
            least = "0 to " if self.reason is Reason.TOKEN else ""
            text += f", expected {least}{self.expected}"
        if self.given is not None:
            text += f", given {self.given}"
        if self.nearest is not None:
            text += f", nearest legal target {self.nearest}"
        return f"{text} ({self.detail})" if self.detail else text


@dataclass(eq=False)
class BadValue:
    """The first value of an array that is not finite, and where it stands."""

    kind: str
    """`NaN`, `+Inf` or `-Inf`."""
    owner: str | None = None
    seq: int | None = None
    position: int | None = None
    index: tuple[int, ...] = ()


@dataclass(eq=False)
class StepFailed(EngineError):
    """A stage failed; the private image is thrown away and no owner changed."""

    stage: str
    kind: FailKind
    op: str = ""
    seq: int = 0
    detail: str = ""
    op_number: int = 0
    bad: BadValue | None = None
    status_word: int | None = None
    injected: bool = False

    def __str__(self) -> str:
        text = f"{self.op or 'step'} on sequence {self.seq}: {self.kind} at stage {self.stage}"
        return f"{text} ({self.detail})" if self.detail else text


@dataclass(eq=False)
class InvariantBroken(EngineError):
    """Our own bug: the two banks or a run do not agree; nothing more is published."""

    what: str
    expected: str = ""
    found: str = ""
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        text = self.what
        if self.expected or self.found:
            text += f": expected {self.expected or 'nothing'}, found {self.found or 'nothing'}"
        return text


@dataclass(eq=False)
class Unreadable(EngineError):
    """A file that a person handed in can't be used: what was expected and what was found."""

    path: str
    what: str
    expected: str = ""
    found: str = ""
    offset: int | None = None

    def __str__(self) -> str:
        text = f"{_line(self.path)}: {_line(self.what)}"
        if self.offset is not None:
            text += f" at byte {self.offset}"
        if self.expected:
            text += f", expected {_line(self.expected)}"
        if self.found:
            text += f", found {_line(self.found)}"
        return text


def _line(text: str) -> str:
    """One plain line: names that come from a file hold anything and have any length."""
    line = plain(" ".join(part.strip() for part in text.splitlines()))
    return line if len(line) <= LONGEST_PART else f"{line[:LONGEST_PART]}…"


class Malformed(Unreadable):
    """A scenario, case or model folder that does not follow its format."""
