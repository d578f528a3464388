"""Files under 1 MB that are made to cost: the worst that each reader's loops can be given.

`python -m tests.helpers.hostile NAME` reads one of them under the limits of `mutate`.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from tests.helpers import mutate, prompt_files
from tests.helpers.llama_files import Cell, attention, recurrent, sequence_file, session_file


def stored(hashes: list[int], parent: int | None = None) -> list[Any]:
    return ["BlockStored", hashes, parent, [], 4]


def line(number: int, batch: list[Any]) -> bytes:
    raw = msgspec.msgpack.encode(batch)
    record = {"port": 1, "seq": number, "payload_b64": base64.b64encode(raw).decode()}
    return json.dumps(record).encode() + b"\n"


def pairs(n: int, seqs: tuple[int, ...]) -> list[Cell]:
    """Images of two cells each, with a jump that none explains."""
    return [
        Cell(2 * own, seqs, (2 * own + column, 2 * own, -1))
        for own in range(n)
        for column in (0, 1)
    ]


def cache(classes: list[str], tensors: dict[str, Any]) -> bytes:
    named = {f"1.{number}": kind for number, kind in enumerate(classes)}
    return prompt_files.archive(tensors, {"2.0": "", **named})


def images() -> bytes:
    return sequence_file(attention([pairs(20_000, (0,))], ext=12, layers=0))


def many_sequences() -> bytes:
    return session_file("qwen2vl", attention([pairs(490, tuple(range(256)))], ext=12, layers=0))


def changing_cells() -> bytes:
    cells = [Cell(2 * own, tuple(range(own % 2 + 1))) for own in range(60_000)]
    return session_file("llama", attention([cells], layers=0))


def equal_blocks() -> bytes:
    return sequence_file(recurrent([Cell(1, ())], m=500, n_layer=512, r_row=4, s_row=4))


def empty_blocks() -> bytes:
    head = struct.pack("<III", 0, 0, 512)
    return sequence_file(head + struct.pack("<iQ", 0, 4) * 80_000)


def histories() -> bytes:
    head = struct.pack("<III", 0, 0, 512) + struct.pack("<iQ", 0, 4)
    return sequence_file(head + struct.pack("<Q", 1) * 110_000)


def long_chain() -> bytes:
    return line(0, [1.0, [stored(list(range(1 << 20, (1 << 20) + 140_000)))]])


def every_second_block() -> bytes:
    names = list(range(1 << 20, (1 << 20) + 60_000))
    return line(0, [1.0, [stored(names), ["BlockRemoved", names[::2]]]])


def comb() -> bytes:
    """12,000 chains, each through up to 6,000 missing blocks."""
    n, base = 12_000, 100_000
    spine = [stored([base + own], base + own - 1 if own else None) for own in range(n)]
    teeth = [stored([3 * base + own], base + own) for own in range(n)]
    gone = ["BlockRemoved", list(range(base, base + n, 2))]
    return line(0, [1.0, [*spine, *teeth, gone]])


def held_back() -> bytes:
    return b"".join(line(own, [own, []]) for own in range(1, 14_000))


def gaps() -> bytes:
    return b"".join(
        line(2 * own, [float(own), [stored([own], own + 7)]]) for own in range(1, 8_000)
    )


def publishers() -> bytes:
    return b"".join(
        json.dumps({"port": own, "seq": 1, "payload_b64": "kgGQ"}).encode() + b"\n"
        for own in range(19_000)
    )


def classes_only() -> bytes:
    return cache(["KVCache"] * 4_000, {})


def children() -> bytes:
    return cache(["CacheList"], {f"0.{own}.0.0": prompt_files.ints(1) for own in range(4_000)})


def batches() -> bytes:
    ones = np.ones((512, 1, 1, 1), "<f2")
    tensors = {f"{layer}.{side}": ones for layer in range(200) for side in (0, 1)}
    return cache(["ConcatenateKVCache"] * 200, tensors)


def heads() -> bytes:
    return cache(
        ["ConcatenateKVCache"], {f"0.{i}": np.ones((1, 60_000, 1, 1), "<f2") for i in (0, 1)}
    )


def every_second_row() -> bytes:
    rows = (np.arange(200_000) % 2).astype("<f2").reshape(1, 1, -1, 1)
    return cache(["ConcatenateKVCache"], {"0.0": rows, "0.1": rows})


def nested_header() -> bytes:
    return struct.pack("<Q", 900_000) + b'{"a":' + b"[" * 899_995


def wide_map() -> bytes:
    head = b"find_slot: stream[0], n = 5, used = 5, head = 5, size = 400000, n_swa = 0\n\n"
    return head + b"." * 400_000 + b"\n\n" + (b".    " * 64 + b" *\n") * 1_500


def snapshots() -> bytes:
    return b"find_slot: stream[0], n = 5, used = 5, head = 5, size = 256, n_swa = 0\n" * 9_000


def errors() -> bytes:
    start = (
        b"init: the tokens of sequence 0 in the input batch have inconsistent sequence positions:"
    )
    return (start + b"\n") * 10_000


CASES: dict[str, Callable[[], bytes]] = {
    own.__name__: own
    for own in (
        images,
        many_sequences,
        changing_cells,
        equal_blocks,
        empty_blocks,
        histories,
        long_chain,
        every_second_block,
        comb,
        held_back,
        gaps,
        publishers,
        classes_only,
        children,
        batches,
        heads,
        every_second_row,
        nested_header,
        wide_map,
        snapshots,
        errors,
    )
}


if __name__ == "__main__":
    data = CASES[sys.argv[1]]()
    assert len(data) <= 1 << 20, f"{sys.argv[1]} has {len(data)} bytes"
    files = mutate.bases()
    mutate.use(files[0][1])
    mutate.limit()
    print(json.dumps(mutate.timed(data)))
