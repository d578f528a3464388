"""Codes of pixel columns against a slow, plain oracle that colours every position by itself."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from app.models import columns
from app.models import sequences as model
from app.models.foreign import track_of_ranges
from app.models.sequences import Kind, Track
from tests.app import values


@dataclass(frozen=True)
class Plain:
    """State of another engine as sets of positions."""

    live: frozenset[int]
    evicted: frozenset[int]
    repeated: frozenset[int]
    size: int

    @property
    def anchor(self) -> int:
        return min(self.live)

    def members(self, position: int) -> range:
        start = position - (position - self.anchor) % self.size
        return range(start, start + self.size)

    def kind(self, position: int) -> Kind:
        if position < 0 or position > max(self.live):
            return Kind.OUTSIDE
        if position < self.anchor:
            return Kind.EVICTED if position in self.evicted else Kind.PADDING
        if position not in self.live:
            return Kind.HOLE
        members = self.members(position)
        if members[-1] > max(self.live):
            return Kind.TAIL
        if not self.live.issuperset(members) or self.repeated.intersection(members):
            return Kind.FORGOTTEN
        return Kind.GROUP_B if (members[0] - self.anchor) // self.size % 2 else Kind.GROUP_A


def plain_columns(plain: Plain, x0: float, per: float, width: int) -> tuple[list, list]:
    """Usual and loudest code of each column, position by position."""
    usual, loud = [], []
    for column in range(width):
        if per >= 1:
            first = int((x0 + (column + 0.5) / per) // 1)
            positions = [first]
        else:
            first, stop = int((x0 + column / per) // 1), int((x0 + (column + 1) / per) // 1)
            positions = list(range(first, stop))
        found = [plain.kind(p) for p in positions]
        groups = {Kind.GROUP_A, Kind.GROUP_B}
        pairs = zip(positions, found, strict=True)
        named = {plain.members(p) for p, k in pairs if k in groups}
        blend = [Kind.MIX if k in groups and len(named) > 1 else k for k in found]
        loud.append(max(blend))
        counts: dict[Kind, int] = {}
        for kind in blend:
            if kind is not Kind.OUTSIDE:
                counts[kind] = counts.get(kind, 0) + 1
        most = max(counts.values(), default=0)
        usual.append(max((k for k, n in counts.items() if n == most), default=Kind.OUTSIDE))
    return usual, loud


def random_track(rng: random.Random) -> tuple[Track, Plain]:
    """State of another engine with padding, evicted ranges, holes and repeated positions."""
    at = rng.randrange(0, 30)
    evicted = [(rng.randrange(0, 5), at)] if at > 6 and rng.random() < 0.5 else []
    live = []
    for _ in range(rng.randrange(1, 6)):
        stop = at + rng.randrange(1, 40)
        live.append((at, stop))
        at = stop + rng.randrange(0, 9)
    positions = [p for a, b in live for p in range(a, b)]
    repeated = rng.sample(positions, min(len(positions), rng.randrange(3)))
    size = rng.choice([2, 3, 4, 8])
    gone = [p for a, b in evicted for p in range(a, b)]
    track = track_of_ranges(0, live, evicted, size, repeated=[(p, p + 1) for p in repeated])
    return track, Plain(frozenset(positions), frozenset(gone), frozenset(repeated), size)


@pytest.mark.parametrize("seed", range(40))
def test_columns_of_every_zoom_agree_with_one_position_at_a_time(seed: int) -> None:
    rng = random.Random(seed)
    track, plain = random_track(rng)
    for _ in range(12):
        width = rng.randrange(1, 60)
        per = rng.choice([0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0])
        x0 = rng.randrange(0, max(1, track.hi)) * 1.0
        usual, loud = columns.column_codes(track, x0, per, width)
        plain_usual, plain_loud = plain_columns(plain, x0, per, width)
        assert loud.tolist() == plain_loud, (seed, x0, per, width)
        assert usual.tolist() == plain_usual, (seed, x0, per, width)


def test_one_hole_in_a_million_positions_is_loud_and_not_usual() -> None:
    track = track_of_ranges(0, [(0, 600_001), (600_002, 1_000_000)])
    usual, loud = columns.column_codes(track, 0.0, 1000 / 1_000_000, 1000)
    assert np.count_nonzero(loud == Kind.HOLE) == 1
    assert loud[600] == Kind.HOLE
    assert np.count_nonzero(usual == Kind.HOLE) == 0
    assert not np.isin(loud, [Kind.FORGOTTEN]).any(), "the hole in the same column is louder"
    _, close = columns.column_codes(track, 600_000.0, 1.0, 4)
    assert close.tolist() == [Kind.FORGOTTEN, Kind.HOLE, Kind.FORGOTTEN, Kind.FORGOTTEN]


def test_two_thousand_holes_do_not_paint_the_run_red() -> None:
    live = [(n * 500, n * 500 + 499) for n in range(2000)]
    track = track_of_ranges(0, live)
    usual, loud = columns.column_codes(track, 0.0, 1000 / 1_000_000, 1000)
    assert np.all(loud == Kind.HOLE)
    assert np.count_nonzero(usual == Kind.HOLE) == 0


def test_separators_stand_where_groups_begin() -> None:
    track = model.track_of(values.sequence(0, 10, 26))
    found = columns.separator_columns(track, 10.0, 5.0, 100)
    assert found.tolist() == [20, 40, 60, 80]
