"""M-RoPE: which repeated and missing positions an image block explains.

All cells of an image share one temporal position; the next text token stands max(width, height)
behind it. So repeats and that jump are correct, and every other one is not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.formats.positions import Ints, Survey
from engine.formats.report import Span

Block = tuple[int, int, int]
"""Temporal position, width, height."""


def explain(found: Survey, positions: Ints, ext: Ints) -> tuple[Survey, tuple[Block, ...]]:
    """`found` without the holes and duplicates that image blocks explain, and the blocks.

    Args:
        positions: [n] temporal positions of the sequence's cells.
        ext: [n, 3] x, y and token of the same cells.
    """
    order = np.lexsort((ext[:, 0], ext[:, 1], positions))
    positions, ext = positions[order], ext[order]
    distinct, starts, counts = np.unique(positions, return_index=True, return_counts=True)
    new_key = np.ones(positions.size, np.int64)
    same = (positions[1:] == positions[:-1]) & (ext[1:, :2] == ext[:-1, :2]).all(axis=1)
    new_key[1:] = ~same
    n_keys = np.add.reduceat(new_key, starts)
    placeholder = np.minimum.reduceat(ext[:, 2], starts) == -1
    # one key without a placeholder is a text token, however often it is there
    images = (n_keys > 1) | placeholder
    width, height = (
        np.maximum(1, np.maximum.reduceat(ext[:, axis], starts) - distinct + 1) for axis in (0, 1)
    )
    repeated = distinct[n_keys < counts].tolist()
    broken = distinct[images & (n_keys != width * height)].tolist()
    holes = [*found.holes, *((position, position + 1) for position in broken)]
    listed = (column[images].tolist() for column in (distinct, width, height))
    blocks = list(zip(*listed, strict=True))
    jumps = {position: max(w, h) for position, w, h in blocks}
    kept = sorted(unexplained(holes, jumps))
    first, stop = found.run or (0, 0)
    clean_stop = min([stop, *(span[0] for span in kept), *repeated], default=stop)
    explained = replace(
        found,
        holes=tuple(kept),
        duplicates=tuple(repeated),
        stepped=found.stepped and bool(kept),
        clean_stop=max(first, clean_stop),
    )
    return explained, tuple(blocks)


def unexplained(holes: list[Span], jumps: dict[int, int]) -> list[Span]:
    """What is left of the holes behind image blocks, `jumps[p]` = max(width, height) at p."""
    kept = []
    for start, stop in holes:
        jump = jumps.get(start - 1, 1)
        if stop - start + 1 < jump:
            kept.append((start, stop))
        elif start + jump - 1 < stop:
            kept.append((start + jump - 1, stop))
    return kept
