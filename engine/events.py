"""What the driver tells the outside while it works; `Snapshot` and `Record` are in `snapshot`.

Every event is frozen. An event travels with the ticket of the command that caused it (0: none).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.progress import Progress
from engine.snapshot import ArraySlice, CheckResult, LimitView, Record, Snapshot, StageView


@dataclass(frozen=True, slots=True)
class StagesChanged:
    """The plan of the open (or, after its end, the last) transaction, stage by stage."""

    txn: int
    stages: tuple[StageView, ...]


@dataclass(frozen=True, slots=True)
class FeedChanged:
    """Tokens that wait in a sequence's queue, and whether the driver runs by itself."""

    queued: tuple[tuple[int, int], ...]
    """(sequence, tokens waiting)."""
    running: bool
    chunk: int


@dataclass(frozen=True, slots=True)
class LimitsKnown:
    """Answer to `Limits`."""

    seq: int
    limits: tuple[LimitView, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """Answer to `Try`: what the op would do; nothing was done."""

    record: Record


@dataclass(frozen=True, slots=True)
class Trouble:
    """A command could not be carried out; the session is as before."""

    command: str
    sentence: str


@dataclass(frozen=True, slots=True)
class FaultsChanged:
    """Armed faults: (stage, kind, times left with 0 for always, passes before it fires)."""

    faults: tuple[tuple[str, str, int, int], ...]


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session stands: its stages (transaction and graph) in order and its owners by name."""

    model: str
    backend: str
    stages: tuple[tuple[str, str], ...]
    """(name, `transaction` or `graph`)."""
    owners: tuple[tuple[str, str], ...]
    """(name, unit)."""
    arrays: tuple[tuple[str, int, str], ...]
    """(owner, layer, part) that `ReadArray` can copy out."""
    n_vocabulary: int | None = None
    """Token ids from 0 that the model knows; None when nobody said."""


Body = (
    Snapshot
    | Record
    | StagesChanged
    | FeedChanged
    | LimitsKnown
    | Trial
    | Trouble
    | FaultsChanged
    | SessionOpened
    | ArraySlice
    | CheckResult
    | Progress
)

Emit = Callable[[int, Body], None]
"""Called in the engine's thread with the ticket and the event."""
