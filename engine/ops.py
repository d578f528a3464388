"""The ops as frozen values; reading and writing them as JSON is in `engine.opjson`.

An op says what is asked for. Whether it is legal is decided by `engine.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from engine.terms import FailKind
from engine.validate import ascends_by_one

PositionsLike: TypeAlias = range | Sequence[int] | npt.NDArray[Any]


def compact_positions(positions: PositionsLike) -> range | tuple[int, ...]:
    """A `range` when each position is its predecessor plus one, else a range or tuple as given.

    Raises: TypeError when a position is not an integer.
    """
    if isinstance(positions, range):
        return range(positions.start, positions.start + 1) if len(positions) == 1 else positions
    if isinstance(positions, np.ndarray):
        if positions.dtype.kind not in "iuO":
            raise TypeError(f"positions must be integers, given {positions.dtype}")
        flat = positions.reshape(-1)
        if flat.dtype.kind != "O" and ascends_by_one(flat):
            return range(int(flat[0]), int(flat[0]) + flat.size) if flat.size else range(0)
        positions = flat.tolist()
    values = tuple(positions)
    if any(isinstance(value, bool) or not isinstance(value, (int, np.integer)) for value in values):
        raise TypeError("positions must be integers")
    values = tuple(map(int, values))
    if not values:
        return range(0)
    line = range(values[0], values[0] + len(values))
    return line if values[-1] == line[-1] and all(map(int.__eq__, values, line)) else values


@dataclass(frozen=True, slots=True)
class Append:
    """Add positions at the end of a sequence; `chunk` only cuts the work privately."""

    name: ClassVar[str] = "append"
    seq: int
    positions: range | tuple[int, ...]
    tokens: tuple[int, ...] | None = None
    chunk: int | None = None

    def __init__(
        self,
        seq: int,
        positions: PositionsLike,
        tokens: Sequence[int] | npt.NDArray[Any] | None = None,
        chunk: int | None = None,
    ) -> None:
        ids = tokens.tolist() if isinstance(tokens, np.ndarray) else tokens
        object.__setattr__(self, "seq", seq)
        object.__setattr__(self, "positions", compact_positions(positions))
        object.__setattr__(self, "tokens", None if ids is None else tuple(ids))
        object.__setattr__(self, "chunk", chunk)
        if self.tokens is not None and len(self.tokens) != len(self.positions):
            raise ValueError(
                f"an append of {len(self.positions)} positions needs as many tokens, "
                f"given {len(self.tokens)}"
            )


@dataclass(frozen=True, slots=True)
class Remove:
    """Drop the live positions of a range that is a prefix or a suffix."""

    name: ClassVar[str] = "remove"
    seq: int
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class EvictFront:
    """Drop the `count` oldest positions."""

    name: ClassVar[str] = "evict_front"
    seq: int
    count: int


@dataclass(frozen=True, slots=True)
class Rewind:
    """Drop every position >= `to`, which is the next one to be written."""

    name: ClassVar[str] = "rewind"
    seq: int
    to: int


@dataclass(frozen=True, slots=True)
class Shift:
    """Add `delta` to the live positions of a range."""

    name: ClassVar[str] = "shift"
    seq: int
    delta: int
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """Give the empty `dst` the positions of `src` below `stop`; cells are shared."""

    name: ClassVar[str] = "fork"
    src: int
    dst: int
    stop: int | None = None

    @property
    def seq(self) -> int:
        return self.dst


@dataclass(frozen=True, slots=True)
class Copy:
    """Add a range of `src` to the end of `dst`; cells are shared."""

    name: ClassVar[str] = "copy"
    src: int
    dst: int
    start: int | None = None
    stop: int | None = None

    @property
    def seq(self) -> int:
        return self.dst


@dataclass(frozen=True, slots=True)
class Reset:
    """Empty a sequence."""

    name: ClassVar[str] = "reset"
    seq: int


@dataclass(frozen=True, slots=True)
class Save:
    """Keep a snapshot of a sequence under a name."""

    name: ClassVar[str] = "save"
    seq: int
    slot: str


@dataclass(frozen=True, slots=True)
class Restore:
    """Replace a sequence by a snapshot."""

    name: ClassVar[str] = "restore"
    seq: int
    slot: str


PlainOp: TypeAlias = (
    Append | Remove | EvictFront | Rewind | Shift | Fork | Copy | Reset | Save | Restore
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """Inner ops in order, judged together: only the end result must be one run."""

    name: ClassVar[str] = "transaction"
    ops: tuple[PlainOp, ...]

    @property
    def seq(self) -> int:
        """The first sequence that it names, 0 when it is empty."""
        return self.ops[0].seq if self.ops else 0

    @classmethod
    def append_many(cls, parts: Sequence[Append]) -> Transaction:
        """One append to several sequences: all of it or nothing."""
        return cls(tuple(parts))


@dataclass(frozen=True, slots=True)
class Fail:
    """An op in flight that fails right after `stage`; nothing of it is kept."""

    name: ClassVar[str] = "fail"
    stage: str
    kind: FailKind
    during: PlainOp | Transaction
    times: int | Literal["always"] = 1

    @property
    def seq(self) -> int:
        return self.during.seq


Op: TypeAlias = PlainOp | Transaction | Fail


def sequences_named(op: Op) -> Iterator[int]:
    """Every sequence that the op mentions, in order, repeats included."""
    if isinstance(op, Transaction):
        for inner in op.ops:
            yield from sequences_named(inner)
    elif isinstance(op, Fail):
        yield from sequences_named(op.during)
    elif isinstance(op, (Fork, Copy)):
        yield op.src
        yield op.dst
    else:
        yield op.seq
