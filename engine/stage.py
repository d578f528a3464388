"""What a graph stage is, the context it runs in, and the state it may touch.

A forward pass is a plain tuple of `Stage` (see `engine.graph.graph_stages`). A stage reads and
writes `Step.values` and the state's owners, both by name; it never evaluates and never reads an
array back to the host, so a whole chunk can be one evaluation. Knows nothing of banks and
transactions: they stand behind `State`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.errors import InvariantBroken

if TYPE_CHECKING:
    from engine.graph.model import Model

Ints = npt.NDArray[np.int64]


class State(Protocol):
    """Persistent state of one sequence as the stages of one chunk see it.

    Live indexes count the sequence's live positions from 0. Rows that `append_rows` gave are
    visible to `rows` and `gather` at once. Layers are counted from 0; -1 means the sequence.
    """

    def fixed(self, owner: str, layer: int) -> mx.array | npt.NDArray[Any] | None:
        """Value of a fixed-size owner, None at the start of a sequence.

        "ple.history" is read on the host: give it as a NumPy array, or evaluated.
        """

    def set_fixed(self, owner: str, layer: int, value: mx.array) -> None:
        """Replace a fixed-size owner."""

    def append_rows(self, owner: str, layer: int, part: str, rows: mx.array) -> None:
        """Add [T, ...] rows, one a token of this chunk, after the live ones."""

    def rows(self, owner: str, layer: int, part: str, start: int, stop: int) -> mx.array:
        """[stop - start, ...] rows of a live index range, after the append."""

    def gather(self, owner: str, layer: int, part: str, index: mx.array) -> mx.array:
        """Rows at int32 live indexes of any shape: index.shape + row shape."""

    def put_groups(self, layer: int, first_group: int, pooled: mx.array) -> None:
        """[n, d] pooled keys of the complete groups from `first_group` on."""

    def groups(self, layer: int, start: int, stop: int) -> mx.array:
        """[stop - start, d] pooled keys, normalised, not rotated."""

    def cells(self, start: int, stop: int) -> mx.array | Ints | None:
        """Positions of a live index range as the device's tables have them, or None."""


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """What a device finds of a stretch of one run's groups and tail; unevaluated."""

    word: mx.array
    """One uint32, 0 is good; bits as named in `metal.status`."""
    part: Callable[[], int]
    """Number within the stretch of the first part that is wrong, -1 for none; the tail comes after
    the groups. Only to be asked once `word` is evaluated."""
    first_position: int
    """Position at which the stretch begins, a group's first."""
    n_live: int
    """Positions in the stretch."""
    group_size: int
    first_group: int = 0
    """Number of the stretch's first group in the run."""


@dataclass(slots=True)
class Step:
    """Working context of one chunk of one sequence.

    Rows of every float in `values` are padded to whole tiles of the backend: token t of the chunk
    stands in row `lead + t` of `n_rows` (lead = consumed % tile_rows), so a token has the same
    slot of its tile for any cut. Other rows are padding: finite, and without any influence.
    Exceptions have exactly T rows ("logits", chosen experts, what is appended to an owner) or the
    rows of `queries` (index scores, chosen groups, attention before its output product).
    """

    model: Model
    tokens: Ints
    """[T] token ids, at least one."""
    positions: Ints
    """[T] positions, first_position + n_live_before and on."""
    n_live_before: int
    """Live positions before this chunk; also the live index of the first token."""
    first_position: int
    """Position of live index 0."""
    consumed: int
    """Tokens that the sequence consumed before this chunk, evicted ones included."""
    state: State
    values: dict[str, mx.array] = field(default_factory=dict)
    status: list[GroupCheck] = field(default_factory=list)
    """What the device found of the groups; a word that is not 0 fails the stage."""
    shared: dict[str, Any] = field(default_factory=dict)
    """Things that several stages derive from the same integers; never checked."""
    n_tokens: int = field(init=False)
    lead: int = field(init=False)
    n_rows: int = field(init=False)

    def __post_init__(self) -> None:
        tile = self.model.backend.tile_rows
        self.n_tokens = len(self.tokens)
        if self.n_tokens < 1 or len(self.positions) != self.n_tokens:
            raise InvariantBroken(
                "a step has one position a token and at least one token",
                f"{self.n_tokens} positions" if self.n_tokens else "a token",
                f"{len(self.positions)}",
            )
        self.lead = self.consumed % tile
        self.n_rows = -(-(self.lead + self.n_tokens) // tile) * tile

    @property
    def queries(self) -> slice:
        """The padded rows in whole query tiles that hold the chunk's tokens."""
        rows = self.model.backend.query_rows
        stop = -(-(self.lead + self.n_tokens) // rows) * rows
        return slice(self.lead // rows * rows, stop)

    @property
    def n_live(self) -> int:
        """Live positions with those of this chunk."""
        return self.n_live_before + self.n_tokens

    def live(self, padded: mx.array) -> mx.array:
        """The T rows of the chunk's tokens out of a padded array."""
        if padded.shape[0] == self.n_tokens:
            return padded
        return padded[self.lead : self.lead + self.n_tokens]

    def pad(self, rows: mx.array) -> mx.array:
        """[T, ...] to [n_rows, ...], zeros around."""
        after = self.n_rows - self.lead - self.n_tokens
        if not (self.lead or after):
            return rows
        return mx.pad(rows, [(self.lead, after)] + [(0, 0)] * (rows.ndim - 1))

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """A shared thing, made at its first use."""
        if name not in self.shared:
            self.shared[name] = make()
        return self.shared[name]


@dataclass(frozen=True, slots=True)
class Stage:
    """A named part of the forward pass."""

    name: str
    run: Callable[[Step], None]
    reads: tuple[str, ...]
    """Names in `Step.values` and of owners; "tokens" is the chunk's ids."""
    writes: tuple[str, ...]
    floats: tuple[str, ...]
    """Values to be checked for not-a-number and infinity after this stage."""
    poison: str
    """The float value into which an injected NaN goes."""
    probed: tuple[str, ...] = ()
    """Those of `floats` that are summed in fast mode: what persists, and what the rest of the pass
    may swallow (a sigmoid makes a number of infinity, a choice leaves rows out). Everything else
    reaches the logits, which are summed; a bad sum leads to all `floats` of all stages."""
    whole: tuple[str, ...] = ()
    """Those of `floats` without a row a token: windows, states, keys of groups."""
    keeps: tuple[tuple[str, str], ...] = ()
    """(value, owner) of those of `floats` that an owner keeps as they are."""
    poison_before: bool = False
    """The NaN goes in before `run`, because the output is a choice of integers: it then reaches
    the scores, and their check (in `floats`) names this stage."""


def check_plan(stages: tuple[Stage, ...], owners: frozenset[str]) -> None:
    """Every value is written before it is read, and every stage can be poisoned.

    Raises: InvariantBroken with the stage and the name.
    """
    known = {"tokens", *owners}
    for stage in stages:
        for name in stage.reads:
            if name not in known:
                raise InvariantBroken(f"stage {stage.name} reads {name} before it is written")
        if stage.poison_before and stage.poison not in known:
            raise InvariantBroken(f"stage {stage.name} cannot be poisoned before it runs")
        known.update(stage.writes)
        for name in (*stage.floats, stage.poison):
            if name not in known:
                raise InvariantBroken(f"stage {stage.name} names {name}, which is not written")
        for name in (*stage.probed, *stage.whole, *(value for value, _ in stage.keeps)):
            if name not in stage.floats:
                raise InvariantBroken(f"stage {stage.name} names {name}, which it does not check")
