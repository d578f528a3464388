"""Caches that mlx-lm itself made and saved: every row carries its own position.

So the file says which row holds which position, independently of the reader's rules. Sequences of
chunks, single steps and trims are random; the seed is printed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.formats import Code, Opened, open_file

cache_module = pytest.importorskip("mlx_lm.models.cache")
HEADS, WIDTH = 2, 32
SEEDS = range(12)


def rows_of(positions: list[list[int]]) -> mx.array:
    """[B, HEADS, S, WIDTH] rows whose every value is position + 1; -1000 marks padding."""
    values = np.array(positions, np.float32)[:, None, :, None] + 1
    return mx.array(np.broadcast_to(values, (*values.shape[:1], HEADS, values.shape[2], WIDTH)))


def feed(cache: Any, start: int, count: int) -> int:
    rows = rows_of([list(range(start, start + count))])
    cache.update_and_fetch(rows, rows)
    return start + count


def saved(folder: Path, caches: list[Any], name: str = "cache.safetensors") -> Path:
    path = folder / name
    cache_module.save_prompt_cache(str(path), caches)
    return path


def truth(path: Path, key: str, row_limit: int | None = None) -> dict[int, int]:
    """Position by row, read from the rows themselves (first sequence)."""
    keys = np.array(mx.load(str(path))[key])[0, 0, :, 0]
    return {row: round(float(value)) - 1 for row, value in enumerate(keys[:row_limit])}


def shown(opened: Opened, index: int = 0) -> dict[int, int]:
    cells = opened.cell_map(index).positions
    return {int(row): int(cells[row]) for row in np.flatnonzero(cells >= 0)}


def run_random(cache: Any, rng: random.Random, can_trim: bool) -> int:
    """Random chunks, steps and trims; returns the offset."""
    end = 0
    for _ in range(rng.randrange(2, 30)):
        action = rng.random()
        if action < 0.2 and can_trim and end and cache.is_trimmable():
            end -= cache.trim(rng.randrange(1, end + 1))
        else:
            end = feed(cache, end, 1 if action < 0.7 else rng.randrange(2, 30))
    return end or feed(cache, 0, 3)


FACTORIES: dict[str, Callable[[random.Random], Any]] = {
    "KVCache": lambda rng: cache_module.KVCache(),
    "ConcatenateKVCache": lambda rng: cache_module.ConcatenateKVCache(),
    "RotatingKVCache": lambda rng: cache_module.RotatingKVCache(
        rng.randrange(8, 40), keep=rng.choice((0, 0, 4))
    ),
}


@pytest.mark.parametrize("kind", FACTORIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_stand_where_the_reader_says(tmp_path: Path, kind: str, seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    cache = FACTORIES[kind](rng)
    end = run_random(cache, rng, can_trim=kind != "ConcatenateKVCache")
    path = saved(tmp_path, [cache])
    with open_file(path) as opened:
        report = opened.report
        assert report.verdict == "ok", report.reason
        (sequence,) = report.sequences
        assert sequence.run is not None
        assert sequence.run[1] == end
        held = shown(opened)
    rows = truth(path, "0.0")
    assert all(rows[row] == position for row, position in held.items())
    # nothing that counts was left out: the newest positions of the window, or all of them
    kept = set(held.values())
    window = cache.max_size if kind == "RotatingKVCache" else end
    assert kept >= set(range(max(0, end - window + getattr(cache, "keep", 0)), end))


@pytest.mark.parametrize("seed", SEEDS)
def test_chunked_rows(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    cache = cache_module.ChunkedKVCache(chunk_size=rng.randrange(8, 40))
    end = 0
    for _ in range(rng.randrange(1, 20)):
        end = feed(cache, end, rng.randrange(1, 20))
        cache.maybe_trim_front()
    path = saved(tmp_path, [cache])
    with open_file(path) as opened:
        assert opened.report.verdict == "ok"
        assert opened.report.sequences[0].run == (cache.start_position, end)
        held = shown(opened)
    rows = truth(path, "0.0")
    assert all(rows[row] == position for row, position in held.items())


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("group_size", [32, 64])
def test_quantised_rows_and_norms(tmp_path: Path, bits: int, group_size: int) -> None:
    cache = cache_module.QuantizedKVCache(group_size=group_size, bits=bits)
    rng = np.random.default_rng(bits)
    data = rng.standard_normal((1, HEADS, 21, 64)).astype(np.float32)
    cache.update_and_fetch(mx.array(data), mx.array(data))
    path = saved(tmp_path, [cache])
    with open_file(path) as opened:
        assert opened.report.verdict == "ok", opened.report.reason
        assert opened.report.sequences[0].run == (0, 21)
        norms = opened.row_norms("layer.0")
    assert norms.names == ("layer 0 K", "layer 0 V")
    restored = mx.dequantize(*(part[..., :21, :] for part in cache.keys), group_size, bits)
    expected = np.sqrt((np.array(restored) ** 2).sum(axis=(0, 1, 3)))
    np.testing.assert_allclose(norms.norms[0, :21], expected, rtol=1e-4)
    assert (norms.norms[:, 21:] == 0).all()


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16, mx.float32])
def test_norms_of_plain_rows(tmp_path: Path, dtype: Any) -> None:
    cache = cache_module.KVCache()
    data = np.random.default_rng(3).standard_normal((1, HEADS, 9, 8)).astype(np.float32)
    keys, values = mx.array(data).astype(dtype), mx.array(data * 2).astype(dtype)
    cache.update_and_fetch(keys, values)
    with open_file(saved(tmp_path, [cache])) as opened:
        norms = opened.row_norms("layer.0").norms[:, :9]
    plain = np.array(keys.astype(mx.float32))
    expected = np.sqrt((plain**2).sum(axis=(0, 1, 3)))
    np.testing.assert_allclose(norms[0], expected, rtol=1e-5)
    np.testing.assert_allclose(norms[1], 2 * expected, rtol=1e-5)


def batch_rows(lengths: list[int], done: list[int], count: int) -> mx.array:
    """The next `count` columns of a left-padded batch."""
    return rows_of([list(range(own, own + count)) for own in done])


@pytest.mark.parametrize("kind", ["BatchKVCache", "BatchRotatingKVCache"])
@pytest.mark.parametrize("seed", SEEDS)
def test_batched_rows(tmp_path: Path, kind: str, seed: int) -> None:
    """Left padding, chunks, steps and the removal of a sequence."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    padding = [rng.randrange(0, 9) for _ in range(rng.randrange(1, 4))]
    padding[rng.randrange(len(padding))] = 0
    if kind == "BatchKVCache":
        cache = cache_module.BatchKVCache(padding)
    else:
        cache = cache_module.BatchRotatingKVCache(rng.randrange(12, 30), padding)
    done = [-pad for pad in padding]
    for step in range(rng.randrange(1, 25)):
        count = rng.randrange(10, 16) if step == 0 else rng.choice((1, 1, 1, 5))
        rows = batch_rows(padding, done, count)
        cache.update_and_fetch(rows, rows)
        done = [own + count for own in done]
    if len(done) > 1 and rng.random() < 0.5:
        keep = sorted(rng.sample(range(len(done)), len(done) - 1))
        cache.filter(mx.array(keep))
        done = [done[own] for own in keep]
    path = saved(tmp_path, [cache])
    keys = np.array(mx.load(str(path))["0.0"])[:, 0, :, 0]
    window = getattr(cache, "max_size", None)
    with open_file(path) as opened:
        assert opened.report.verdict == "ok", opened.report.reason
        assert len(opened.report.sequences) == len(done)
        for b, end in enumerate(done):
            held = shown(opened, b)
            assert opened.report.sequences[b].run == (min(held.values()), end)
            assert all(int(keys[b, row]) - 1 == position for row, position in held.items())
            first = 0 if window is None else max(0, end - window)
            assert set(held.values()) >= set(range(first, end))


def test_hybrid_list_and_arrays(tmp_path: Path) -> None:
    """falcon_h1 and deepseek_v32 keep several caches in one layer."""
    arrays = cache_module.ArraysCache(2)
    arrays[0], arrays[1] = mx.ones((1, 3, 4)), mx.ones((1, 2, 2))
    attention, index = cache_module.KVCache(), cache_module.KVCache()
    feed(attention, 0, 7)
    rows = rows_of([list(range(7))])
    index.update_and_fetch(rows, mx.zeros_like(rows))
    caches = [cache_module.CacheList(arrays, attention, index), cache_module.ArraysCache(2)]
    caches[1][0] = mx.ones((1, 3, 4))
    with open_file(saved(tmp_path, caches)) as opened:
        report = opened.report
        assert report.verdict == "ok", report.reason
        assert report.sequences[0].run == (0, 7)
        assert report.unproved == ("layer.0.0", "layer.1")
        assert report.fact("unused_values") == ["0.2"]
        roles = [part.role for part in report.sequences[0].parts]
        assert roles == ["recurrent", "attention", "index", "recurrent"]


def test_nested_lists(tmp_path: Path) -> None:
    inner = cache_module.CacheList(cache_module.KVCache(), cache_module.KVCache())
    for own in inner.caches:
        feed(own, 0, 5)
    outer = cache_module.CacheList(inner, cache_module.KVCache())
    feed(outer[1], 0, 5)
    with open_file(saved(tmp_path, [outer])) as opened:
        assert opened.report.verdict == "ok", opened.report.reason
        names = [part.name for part in opened.report.sequences[0].parts]
    assert names == ["layer.0.0.0", "layer.0.0.1", "layer.0.1"]


def test_an_empty_cache_has_no_state_and_is_sound(tmp_path: Path) -> None:
    caches = [cache_module.KVCache(), cache_module.ArraysCache(2)]
    with open_file(saved(tmp_path, caches)) as opened:
        assert opened.report.verdict == "ok"
        assert opened.report.sequences == ()


def test_one_layer_without_state_is_missing(tmp_path: Path) -> None:
    caches = [cache_module.KVCache(), cache_module.KVCache()]
    feed(caches[0], 0, 5)
    with open_file(saved(tmp_path, caches)) as opened:
        assert opened.report.codes == (Code.MISSING,)
        assert "layer 1" in opened.report.reason


def test_a_large_trim_of_a_wrapped_ring_shows(tmp_path: Path) -> None:
    """mlx-lm does not stop it: the index goes negative."""
    cache = cache_module.RotatingKVCache(16)
    end = 0
    for _ in range(20):
        end = feed(cache, end, 1)
    cache.trim(9)
    with open_file(saved(tmp_path, [cache])) as opened:
        assert opened.report.codes == (Code.INCONSISTENT,)
        assert "ring index -5" in opened.report.reason


def test_a_draft_of_the_same_shape_is_named_as_a_possibility(tmp_path: Path) -> None:
    caches = [cache_module.KVCache() for _ in range(4)]
    for own, count in zip(caches, (9, 9, 9, 8), strict=True):
        feed(own, 0, count)
    with open_file(saved(tmp_path, caches)) as opened:
        assert opened.report.codes == (Code.TORN,)
        assert "draft model" in opened.report.reason
        assert opened.report.sequences[0].usable == (0, 8)


def sized(heads: int, count: int, kind: str = "KVCache") -> Any:
    cache = cache_module.KVCache() if kind == "KVCache" else cache_module.RotatingKVCache(64)
    rows = rows_of([list(range(count))])[:, :heads]
    cache.update_and_fetch(rows, rows)
    return cache


@pytest.mark.parametrize(
    ("caches", "codes"),
    [
        # target of two heads, draft of one, one position behind
        ([(2, 9), (2, 9), (1, 8)], ()),
        ([(2, 9), (1, 7), (1, 7)], ()),
        # a draft does not lead, nor end at several positions
        ([(2, 8), (2, 8), (1, 9)], (Code.TORN,)),
        ([(2, 9), (1, 8), (1, 7)], (Code.TORN,)),
        # a border that does not show
        ([(2, 9), (1, 9), (2, 8)], (Code.TORN,)),
    ],
)
def test_a_draft_model_behind_the_target(
    tmp_path: Path, caches: list[tuple[int, int]], codes: tuple[Code, ...]
) -> None:
    made = [sized(heads, count) for heads, count in caches]
    with open_file(saved(tmp_path, made)) as opened:
        assert opened.report.codes == codes
        assert "draft model" in opened.report.reason


def test_a_full_layer_behind_its_sliding_layers_is_torn(tmp_path: Path) -> None:
    """Some models give full layers another size: that alone is no border to a draft."""
    made = [sized(2, 9, "RotatingKVCache"), sized(2, 9, "RotatingKVCache"), sized(1, 4)]
    with open_file(saved(tmp_path, made)) as opened:
        assert opened.report.codes == (Code.TORN,)


def test_children_of_one_layer_are_no_draft(tmp_path: Path) -> None:
    made = [cache_module.CacheList(sized(2, 9), sized(1, 5))]
    with open_file(saved(tmp_path, made)) as opened:
        assert opened.report.codes == (Code.TORN,)


def test_torn_attention_before_a_recurrent_state_leaves_nothing_usable(tmp_path: Path) -> None:
    arrays = cache_module.ArraysCache(1)
    arrays[0] = mx.ones((1, 2, 2))
    caches = [cache_module.KVCache(), arrays, cache_module.KVCache()]
    feed(caches[0], 0, 12)
    feed(caches[2], 0, 8)
    with open_file(saved(tmp_path, caches)) as opened:
        assert opened.report.codes == (Code.TORN,)
        assert opened.report.sequences[0].usable is None


@pytest.mark.parametrize(
    ("offset", "rows", "words"),
    [(300, 256, "offset 300, but 256 rows"), (-1, 256, "offset -1, but 256 rows")],
)
def test_an_offset_beyond_the_buffer(tmp_path: Path, offset: int, rows: int, words: str) -> None:
    cache = cache_module.KVCache()
    feed(cache, 0, 5)
    cache.offset = offset
    with open_file(saved(tmp_path, [cache])) as opened:
        assert opened.report.codes == (Code.INCONSISTENT,)
        assert words in opened.report.reason


def test_keys_and_values_of_different_length(tmp_path: Path) -> None:
    cache = cache_module.KVCache()
    feed(cache, 0, 5)
    cache.values = cache.values[:, :, :100]
    with open_file(saved(tmp_path, [cache])) as opened:
        assert opened.report.codes == (Code.INCONSISTENT,)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16, mx.float32])
def test_one_value_that_is_not_finite(tmp_path: Path, value: float, dtype: Any) -> None:
    cache = cache_module.KVCache()
    rows = np.array(rows_of([list(range(9))]))
    rows[0, 1, 6, 3] = value
    cache.update_and_fetch(mx.array(rows).astype(dtype), rows_of([list(range(9))]).astype(dtype))
    with open_file(saved(tmp_path, [cache])) as opened:
        assert opened.report.codes == (Code.NON_FINITE,)
        sequence = opened.report.sequences[0]
        assert sequence.parts[0].non_finite == ((6, 7),)
        assert sequence.usable == (0, 6)


def test_a_recurrent_state_that_is_not_finite(tmp_path: Path) -> None:
    arrays = cache_module.ArraysCache(1)
    arrays[0] = mx.array([[1.0, float("nan")]])
    cache = cache_module.KVCache()
    feed(cache, 0, 4)
    with open_file(saved(tmp_path, [arrays, cache])) as opened:
        assert opened.report.codes == (Code.NON_FINITE,)
        assert opened.report.findings[0].part == "layer.0"


def test_an_unknown_class_is_undecodable(tmp_path: Path) -> None:
    class FutureCache(cache_module.KVCache):  # type: ignore[name-defined, misc]
        pass

    caches = [FutureCache(), cache_module.KVCache()]
    for own in caches:
        feed(own, 0, 5)
    with open_file(saved(tmp_path, caches)) as opened:
        assert opened.report.codes == (Code.UNDECODABLE,)
        assert "FutureCache" in opened.report.reason
        assert opened.report.sequences[0].run == (0, 5)


def test_rows_of_a_hole_in_a_ring_are_named_by_position(tmp_path: Path) -> None:
    cache = cache_module.RotatingKVCache(16)
    end = 0
    for _ in range(21):
        end = feed(cache, end, 1)
    cache.keys[..., 2:4, :] = 0
    path = saved(tmp_path, [cache])
    with open_file(path) as opened:
        assert opened.report.codes == (Code.HOLE,)
        assert opened.report.sequences[0].parts[0].holes == ((18, 20),)
        offset = opened.report.findings[0].offset
    assert offset is not None
    raw = path.read_bytes()[offset : offset + 2 * 4 * WIDTH]
    assert raw == bytes(len(raw))
    before = np.frombuffer(path.read_bytes()[offset - 4 * WIDTH : offset], "<f4")
    assert (before == 18).all()  # position 17 stands in the row before


def test_a_layer_that_was_trimmed_to_nothing_is_torn(tmp_path: Path) -> None:
    caches = [cache_module.KVCache(), cache_module.KVCache()]
    for own in caches:
        feed(own, 0, 5)
    caches[1].trim(5)
    with open_file(saved(tmp_path, caches)) as opened:
        assert opened.report.codes == (Code.TORN,)
        assert "layer 1 holds nothing" in opened.report.reason
        assert opened.report.sequences[0].usable is None
    caches[0].trim(5)
    with open_file(saved(tmp_path, caches)) as opened:
        assert opened.report.verdict == "ok"
        assert opened.report.sequences == ()
