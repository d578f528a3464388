"""What the app may ask of the engine's thread: frozen values, no array of the array library.

An op of the op language travels as itself (`engine.ops`) inside `Do`; everything else is here.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.ops import Op


@dataclass(frozen=True, slots=True)
class OpenModel:
    """Start a session: `folder` None is model-free, a built-in name is looked up in resources."""

    folder: str | None
    backend: str = "auto"
    group_size: int = 4
    capacity: int = 4096
    window: int | None = None
    budget_bytes: int | None = None
    mode: str = "inspect"


@dataclass(frozen=True, slots=True)
class Do:
    """Apply one op now; refused as `busy` while a transaction is open."""

    op: Op


@dataclass(frozen=True, slots=True)
class Try:
    """Say what the op would do, without doing it."""

    op: Op


@dataclass(frozen=True, slots=True)
class Undo:
    """Restore the state before the last edit op, where its undo slot is still kept."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Put tokens in the queue of a sequence; `Run` and the steps consume them in chunks."""

    seq: int
    tokens: tuple[int, ...]
    start: int | None = None
    """First position when the sequence is empty; None continues at the frontier."""


@dataclass(frozen=True, slots=True)
class ClearFeed:
    """Forget the queued tokens of a sequence."""

    seq: int


@dataclass(frozen=True, slots=True)
class SetChunk:
    """Tokens a chunk, at least 1."""

    n_tokens: int


@dataclass(frozen=True, slots=True)
class SetMode:
    """`inspect` (evaluate and time each stage) or `fast` (a chunk at once, or in large pieces)."""

    mode: str


@dataclass(frozen=True, slots=True)
class Run:
    """Execute chunks until the queue is empty, `to_position` is reached, or a pause."""

    to_position: int | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop after the chunk in flight."""


@dataclass(frozen=True, slots=True)
class StepStage:
    """Open a transaction for the next chunk if none is open, and execute one stage of it."""


@dataclass(frozen=True, slots=True)
class StepChunk:
    """Execute the next chunk, or the rest of the open one."""


@dataclass(frozen=True, slots=True)
class StepToken:
    """Execute a chunk of one token."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Execute the remaining stages of the open transaction."""


@dataclass(frozen=True, slots=True)
class Discard:
    """Throw the open transaction away; nothing was published."""


@dataclass(frozen=True, slots=True)
class ArmFault:
    """Make a stage fail."""

    stage: str
    kind: str
    times: int = 1
    """How often it fires; 0 means always."""
    skip: int = 0
    """Let the stage pass this many times before."""


@dataclass(frozen=True, slots=True)
class ClearFaults:
    """Disarm all faults, or only those on one stage."""

    stage: str | None = None


@dataclass(frozen=True, slots=True)
class ReadArray:
    """Copy rows of an owner out for a panel (`start`, `stop`: live positions, half-open)."""

    owner: str
    layer: int
    part: str
    seq: int
    bank: str = "public"
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class RunCheck:
    """`same-as-fresh`, `audit` or `boundary-sweep`."""

    name: str


@dataclass(frozen=True, slots=True)
class SaveSession:
    """Write the public state to a file, atomically."""

    path: str


@dataclass(frozen=True, slots=True)
class LoadSession:
    """Replace the session by a saved one; a bad file changes nothing."""

    path: str


@dataclass(frozen=True, slots=True)
class StartCapture:
    """Record every transaction into a capture file from now on."""

    path: str
    with_text: bool = True


@dataclass(frozen=True, slots=True)
class StopCapture:
    """Close the capture file."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ask how far each op may go on a sequence."""

    seq: int


Command = (
    OpenModel
    | Do
    | Try
    | Undo
    | Feed
    | ClearFeed
    | SetChunk
    | SetMode
    | Run
    | Pause
    | StepStage
    | StepChunk
    | StepToken
    | Finish
    | Discard
    | ArmFault
    | ClearFaults
    | ReadArray
    | RunCheck
    | SaveSession
    | LoadSession
    | StartCapture
    | StopCapture
    | Limits
)
