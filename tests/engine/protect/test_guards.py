"""All cache classes of mlx-lm 0.32.2, driven at random: taken back steps leave no trace."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models import cache as lm
from mlx_lm.models.deepseek_v41 import LayerCache

from engine.protect import StateLost, Transaction, views
from engine.protect.freeze import clone, freeze, restore
from engine.protect.guards import KINDS, buffers, kind_of

HEADS, SIZE = 2, 32


class Foreign:
    """A cache class that nobody here knows: arrays, numbers and a child, changed in place."""

    def __init__(self) -> None:
        self.rows = mx.zeros((1, HEADS, 8, SIZE))
        self.seen = {"tokens": 0, "log": [1]}
        self.child = lm.KVCache()

    @property
    def state(self) -> Any:
        return self.rows, self.child.state

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        self.rows[..., :1, :] = keys[..., :1, :]
        self.seen["tokens"] += keys.shape[2]
        self.seen["log"].append(keys.shape[2])
        return self.child.update_and_fetch(keys, values)


class Slotted:
    """A cache without a dictionary: only its `state` can be asked."""

    __slots__ = ("__weakref__", "rows")

    def __init__(self) -> None:
        self.rows = mx.zeros((1, HEADS, 1, SIZE))

    @property
    def state(self) -> Any:
        return [self.rows]

    @state.setter
    def state(self, value: Any) -> None:
        (self.rows,) = value

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        self.rows[..., :1, :] = keys[..., :1, :] + values[..., :1, :]
        return self.rows, self.rows


def recurrent(cache: Any, keys: Any, values: Any) -> None:
    old = cache[0]
    cache[0] = keys[..., -1, :] if old is None else old * 0.5 + keys[..., -1, :]
    cache[1] = values[..., -1, :]
    cache.advance(keys.shape[2])


def windowed(cache: Any, keys: Any, _: Any) -> None:
    cache.update_window(keys[:, 0])
    cache.pending_kv = keys[:, 0]


def listed(cache: Any, keys: Any, values: Any) -> None:
    cache[0].update_and_fetch(keys, values)
    recurrent(cache[1], keys, values)


def rows(cache: Any, keys: Any, values: Any) -> None:
    cache.update_and_fetch(keys, values)


def chunked(cache: Any, keys: Any, values: Any) -> None:
    cache.maybe_trim_front()
    cache.update_and_fetch(keys, values)


Make = tuple[Callable[[], Any], Callable[[Any, Any, Any], None], int]
CLASSES: dict[str, Make] = {
    "KVCache": (lm.KVCache, rows, 1),
    "RotatingKVCache": (lambda: lm.RotatingKVCache(10), rows, 1),
    "RotatingKVCache keep": (lambda: lm.RotatingKVCache(10, keep=3), rows, 1),
    "QuantizedKVCache": (lambda: lm.QuantizedKVCache(32, 8), rows, 1),
    "ChunkedKVCache": (lambda: lm.ChunkedKVCache(10), chunked, 1),
    "ConcatenateKVCache": (lm.ConcatenateKVCache, rows, 1),
    "ArraysCache": (lambda: lm.ArraysCache(2), recurrent, 1),
    "ArraysCache padded": (lambda: lm.ArraysCache(2, [3, 1]), recurrent, 2),
    "CacheList": (lambda: lm.CacheList(lm.KVCache(), lm.ArraysCache(2)), listed, 1),
    "BatchKVCache": (lambda: lm.BatchKVCache([2, 0]), rows, 2),
    "BatchRotatingKVCache": (lambda: lm.BatchRotatingKVCache(10, [2, 0]), rows, 2),
    "LayerCache": (lambda: LayerCache(6), windowed, 1),
    "Foreign": (Foreign, rows, 1),
    "Slotted": (Slotted, rows, 1),
}


def test_no_class_of_mlx_lm_is_missing_here() -> None:
    known = {name.split()[0] for name in CLASSES}
    there = {
        name
        for name, cls in inspect.getmembers(lm, inspect.isclass)
        if hasattr(cls, "is_trimmable") and not name.startswith("_")
    }
    assert there <= known


def test_classes_that_write_in_place_have_a_guard() -> None:
    """Of mlx-lm's own classes all but those that make new arrays each time."""
    without = {
        name
        for name, cls in inspect.getmembers(lm, inspect.isclass)
        if hasattr(cls, "update_and_fetch") and cls.update_and_fetch not in KINDS
    }
    assert without == {"ConcatenateKVCache", "TokenBuffer"}


def fresh_rows(random_rows: random.Random, batch: int, n: int) -> tuple[Any, Any]:
    key = mx.random.key(random_rows.randrange(1 << 30))
    both = mx.random.normal((2, batch, HEADS, n, SIZE), key=key)
    return both[0], both[1]


def evaluated(cache: Any) -> None:
    mx.eval(cache.state if not isinstance(cache, Slotted) else cache.rows)


@pytest.mark.parametrize("name", CLASSES)
def test_steps_that_are_taken_back_leave_no_trace(name: str, long_profile: bool) -> None:
    """Beside it runs a twin that never failed; their bytes are compared after every step."""
    make, update, batch = CLASSES[name]
    for seed in range(40 if long_profile else 6):
        print("seed", seed)
        dice = random.Random(seed)
        cache, twin = make(), make()
        evaluated(cache)
        for _ in range(40):
            for _ in range(dice.choice([0, 0, 1, 2])):
                before = views.fingerprints([cache])
                try:
                    with Transaction([cache], dice.choice([0, 1, 4])) as transaction:
                        for _ in range(dice.choice([1, 1, 3])):
                            with transaction.guarded():
                                n = dice.choice([1, 1, 1, 2, 7])
                                update(cache, *fresh_rows(dice, batch, n))
                            if (
                                dice.random() < 0.3
                                and hasattr(cache, "trim")
                                and name != "CacheList"
                            ):
                                cache.trim(dice.randrange(0, 4))
                        if dice.random() < 0.5:
                            transaction.fence()
                        raise KeyError("taken back")
                except KeyError:
                    pass
                assert views.fingerprints([cache]) == before
            keys, values = fresh_rows(dice, batch, dice.choice([1, 1, 1, 1, 2, 5]))
            with Transaction([cache], keys.shape[2]) as transaction, transaction.guarded():
                update(cache, keys, values)
                transaction.fence()
            update(twin, keys, values)
            evaluated(twin)
            assert views.fingerprints([cache]) == views.fingerprints([twin])


@pytest.mark.parametrize("name", CLASSES)
def test_a_clone_and_a_later_restore(name: str) -> None:
    make, update, batch = CLASSES[name]
    dice = random.Random(3)
    cache = make()
    for n in (4, 9, 1, 1):
        update(cache, *fresh_rows(dice, batch, n))
        evaluated(cache)
    before = views.fingerprints([cache])
    node = freeze(cache)
    twin = clone(node)
    assert type(twin) is type(cache)
    for n in (1, 3):
        update(cache, *fresh_rows(dice, batch, n))
        evaluated(cache)
    assert views.fingerprints([twin]) == before != views.fingerprints([cache])
    for _ in range(2):
        assert restore(node) is cache
        assert views.fingerprints([cache]) == before
        update(cache, *fresh_rows(dice, batch, 1))
        evaluated(cache)


def test_an_append_in_place_stays_in_place() -> None:
    """No second handle: the very same Python arrays are there after a committed step."""
    for name in ("KVCache", "QuantizedKVCache", "BatchKVCache"):
        make, update, batch = CLASSES[name]
        cache = make()
        dice = random.Random(0)
        update(cache, *fresh_rows(dice, batch, 4))
        evaluated(cache)
        held = buffers(cache)
        with Transaction([cache], 1) as transaction, transaction.guarded():
            update(cache, *fresh_rows(dice, batch, 1))
            transaction.fence()
        assert all(a is b for a, b in zip(buffers(cache), held, strict=True))


def test_a_class_that_replaces_the_writing_method_is_unknown() -> None:
    class Own(lm.KVCache):
        def update_and_fetch(self, keys: Any, values: Any) -> Any:
            return super().update_and_fetch(keys, values)

    class Same(lm.KVCache):
        pass

    assert kind_of(Own()) is None
    assert kind_of(Same()) is kind_of(lm.KVCache())


def test_arrays_that_cannot_be_evaluated_are_refused_from_then_on() -> None:
    class Broken:
        def __init__(self) -> None:
            self.offset = 0

        @property
        def state(self) -> Any:
            return None

    cache = Broken()
    vars(cache)["rows"] = _unreadable()
    for _ in range(2):
        with pytest.raises(StateLost):
            Transaction([cache]).begin()


def _unreadable() -> Any:
    half = mx.zeros((64, 64), dtype=mx.float16)
    # described, but not computable on the CPU
    return mx.block_masked_mm(half, half, 64, mx.ones((1, 1), dtype=mx.bool_), stream=mx.cpu)


def test_deepcopy_of_a_cache_works_between_steps() -> None:
    cache = lm.KVCache()
    with Transaction([cache], 2) as transaction, transaction.guarded():
        cache.update_and_fetch(*fresh_rows(random.Random(0), 1, 2))
        transaction.fence()
    assert views.fingerprints([copy.deepcopy(cache)]) == views.fingerprints([cache])
