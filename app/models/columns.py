"""Codes of pixel columns: what a drawing of a run shows in each, however long the run. No Qt."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from app.models.sequences import SEGMENT_KINDS, Codes, Ints, Kind, Track, below


def edges(x0: float, per_position: float, width: int) -> tuple[Ints, Ints]:
    """First position of each column and one behind its last; every column holds at least one.

    Args:
        x0: position at the left edge, may be fractional.
        per_position: device pixels a position, above 0.
        width: columns.
    """
    if per_position >= 1:
        first = np.floor(x0 + (np.arange(width) + 0.5) / per_position).astype(np.int64)
        return first, first + 1
    cuts = np.floor(x0 + np.arange(width + 1) / per_position).astype(np.int64)
    return cuts[:-1], cuts[1:]


def column_codes(track: Track, x0: float, per_position: float, width: int) -> tuple[Codes, Codes]:
    """(usual, loudest) code of each column of pixels, exactly, however many positions it holds.

    Returns: two arrays [width] of `Kind`. `usual` is the most frequent kind, the louder one at
    a tie; a hole in a column of a million positions is still its loudest.
    """
    first, stop = edges(x0, per_position, width)
    usual = np.zeros(width, np.uint8)
    loud = np.zeros(width, np.uint8)
    if len(track.kinds) == 0:
        return usual, loud
    most = np.zeros(width, np.int64)
    bounds = track.bounds.astype(np.float64)
    groups = _group_codes(track, bounds, first, stop)
    for kind in SEGMENT_KINDS:
        totals = track.totals.get(kind)
        if totals is None:
            continue
        n = below(bounds, totals, stop) - below(bounds, totals, first)
        code = groups if kind is Kind.GROUP_A else np.full(width, kind, np.uint8)
        present = n > 0
        np.copyto(loud, code, where=present)
        np.copyto(usual, code, where=present & (n >= most))
        np.maximum(most, n, out=most)
    return usual, loud


def _group_codes(track: Track, bounds: npt.NDArray[np.float64], first: Ints, stop: Ints) -> Codes:
    """A, B or a mix of both for each column, from the complete groups in it alone."""
    totals = track.totals.get(Kind.GROUP_A)
    if totals is None:
        return np.zeros(len(first), np.uint8)
    # positions of complete groups before a column, so that broken ones between do not count
    before, until = below(bounds, totals, first), below(bounds, totals, stop)
    at = np.minimum(np.searchsorted(totals, before, side="right") - 1, len(track.kinds) - 1)
    group = (track.bounds[at] + before - totals[at] - track.anchor) // track.group_size
    codes = np.where(group % 2 == 0, Kind.GROUP_A, Kind.GROUP_B).astype(np.uint8)
    codes[before // track.group_size != (until - 1) // track.group_size] = Kind.MIX
    return codes


def separator_columns(track: Track, x0: float, per_position: float, width: int) -> Ints:
    """Columns where a group begins, for positions at least 4 pixels wide."""
    first_group = max(1, int((x0 - track.anchor) // track.group_size))
    last = x0 + width / per_position
    last_group = min(track.n_groups, int((last - track.anchor) // track.group_size) + 1)
    if last_group < first_group:
        return np.zeros(0, np.int64)
    starts = track.anchor + np.arange(first_group, last_group + 1) * track.group_size
    columns = np.floor((starts - x0) * per_position).astype(np.int64)
    return np.asarray(columns[(columns >= 0) & (columns < width)], np.int64)
