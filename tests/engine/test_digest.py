"""Digests against their definition, and the cache of block hashes against hashing afresh."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from engine.digest import HASH_BYTES, BlockHashes, block_hash, canonical, hash_blocks, owner_digest
from engine.engine import append
from engine.ops import EvictFront, Fork, Reset, Rewind, Save
from tests.helpers import digests as definition
from tests.helpers.engines import good, prompt, session


@pytest.mark.parametrize(
    "entry", json.loads(definition.VECTORS.read_text()), ids=lambda e: e["name"]
)
def test_vectors(entry: dict) -> None:
    parts = []
    for part in entry["parts"]:
        rows = np.frombuffer(bytes.fromhex("".join(part["rows"])), np.uint8)
        rows = rows.reshape(len(part["rows"]), -1) if part["rows"] else rows.reshape(0, 1)
        parts.append((tuple(part["numbers"]), hash_blocks(part["lo"], part["block"], rows)))
    found = owner_digest(entry["name"], entry["dtype"], entry["shape"], parts)
    assert found == entry["digest"]


def test_the_vectors_are_what_the_definition_gives() -> None:
    assert definition.vectors() == json.loads(definition.VECTORS.read_text())


def test_canonical_bytes_do_not_depend_on_layout_or_byte_order() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = b"".join(int(v).to_bytes(4, "little") for v in range(12))
    assert canonical(rows) == expected
    assert canonical(rows.astype(">i4")) == expected
    assert canonical(np.asfortranarray(rows)) == expected
    assert canonical(np.repeat(rows, 2, axis=1)[:, ::2]) == expected


@pytest.mark.parametrize("size", [1, 4, 16])
def test_kept_blocks_are_what_hashing_afresh_gives(size: int, long_profile: bool) -> None:
    """Appends, truncations, rewrites and front evictions in any order, several at once."""
    seed = 31 + size
    print("seed", seed)
    choice = random.Random(seed)
    for _ in range(300 if long_profile else 40):
        block, lo, rows = BlockHashes(size), 0, []
        for _ in range(25):
            dirty = lo + len(rows)
            for _ in range(choice.randint(1, 3)):
                what = choice.choice(("append", "append", "cut", "evict", "rewrite"))
                if what == "append":
                    rows = rows + [choice.randbytes(3) for _ in range(choice.randint(0, 3 * size))]
                elif what == "cut":
                    rows = rows[: choice.randint(0, len(rows))]
                elif what == "evict":
                    drop = choice.randint(0, len(rows))
                    lo, rows = lo + drop, rows[drop:]
                elif rows:
                    at = choice.randrange(len(rows))
                    rows = rows[:at] + [choice.randbytes(3) for _ in rows[at:]]
                    dirty = min(dirty, lo + at)
                dirty = min(dirty, lo + len(rows)) if what == "cut" else dirty
            ranges = block.keep(lo, lo + len(rows), dirty)
            hashed = [
                [definition.xxh128(b"".join(rows[a - lo : b - lo])) for a, b in part]
                for part in ranges
            ]
            block.fill(*hashed)
            assert block.hashes == definition.blocks(lo, size, rows)
            assert (block.lo, block.hi) == (lo, lo + len(rows))


def test_an_append_hashes_only_the_last_block_and_what_follows() -> None:
    rows = [bytes([n % 251]) for n in range(1000)]
    block = BlockHashes(64)
    block.keep(0, 990, 0)
    block.fill(
        [], [definition.xxh128(b"".join(rows[a : a + 64])) for a in range(0, 960, 64)] + [b"?" * 16]
    )
    assert block.keep(0, 1000, 990) == ([], [(960, 1000)])
    assert len(block.hashes) == 15 * HASH_BYTES


def test_a_copy_is_independent() -> None:
    block = BlockHashes(4, 0, 4, block_hash(b"abcd"))
    twin = block.copy()
    twin.keep(0, 8, 4)
    assert (block.lo, block.hi, block.hashes) == (0, 4, block_hash(b"abcd"))


def test_the_physical_layout_never_enters() -> None:
    """The same sequences in other cells, in several extents, with other keys gone before."""
    tokens = prompt(n=90)
    plain, mixed = session(mode="fast"), session(mode="fast")
    for seq in (0, 1):
        good(plain, append(seq, 0, tokens[:80]))
    good(mixed, append(9, 0, tokens[:33]))
    for at in range(0, 80, 16):
        for seq in (1, 0):
            good(mixed, append(seq, at, tokens[at : at + 16]))
    good(mixed, Reset(9))
    for engine in (plain, mixed):
        good(engine, EvictFront(1, 5))
    cells = [
        [engine.pair.public_bank.look(seq).extents for seq in (0, 1)] for engine in (plain, mixed)
    ]
    assert cells[0] != cells[1]
    assert plain.digests() == mixed.digests()
    mixed.compact()
    assert [mixed.pair.public_bank.look(seq).extents for seq in (0, 1)] != cells[1]
    assert plain.digests() == mixed.digests(recompute=False) == mixed.digests()


def test_anything_visible_enters() -> None:
    engine = session(mode="fast")
    seen = [engine.digests()]
    for op in (
        append(0, 0, [1, 2, 3]),
        append(0, 3, [4]),
        Fork(0, 1),
        Rewind(1, 3),
        EvictFront(0, 1),
        Save(0, "a"),
    ):
        good(engine, op)
        seen.append(engine.digests())
    assert len(set(seen)) == len(seen)


def test_layers_have_digests_of_their_own() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, [1, 2, 3, 4, 5]))
    split = engine.digests(by_layer=True)
    assert split == engine.digests(by_layer=True, recompute=False)
    names = [name for name, _ in split]
    assert len(set(names)) == len(names)
    config = engine.model.config  # type: ignore[union-attr]
    layers = {n for n, kind in enumerate(config.layers) if kind != "gdn"}
    assert {n for n in names if n.startswith("qsa.kv")} == {f"qsa.kv.layer.{n}" for n in layers}
