"""Digests by their definition, straight from the docstring of `engine.digest`; imports nothing
of the engine. Run as a program it writes the test vectors."""

from __future__ import annotations

import json
import random
import struct
import sys
from pathlib import Path
from typing import Any

import xxhash

VECTORS = Path(__file__).resolve().parents[1] / "data" / "digest_vectors.json"
BLOCK = 64


def int64(*values: int) -> bytes:
    return b"".join(struct.pack("<q", value) for value in values)


def xxh128(data: bytes) -> bytes:
    """The 128-bit number as 16 bytes, lowest first."""
    return bytes(reversed(xxhash.xxh3_128_digest(data)))


def blocks(lo: int, size: int, rows: list[bytes]) -> bytes:
    """Hashes of the rows of units lo and on, cut at multiples of `size`."""
    cuts: dict[int, bytes] = {}
    for unit, row in enumerate(rows, lo):
        cuts[unit // size] = cuts.get(unit // size, b"") + row
    return b"".join(xxh128(cuts[number]) for number in sorted(cuts))


def digest(name: str, dtype: str, shape: list[int], parts: list[tuple[list[int], bytes]]) -> str:
    label = name.encode() + b"\0" + dtype.encode()
    data = b"bankflip-digest-1" + int64(len(label), len(shape), *shape) + label
    for numbers, hashes in parts:
        data += int64(len(numbers), *numbers, len(hashes)) + hashes
    return xxh128(data).hex()


def vectors(seed: int = 5) -> list[dict[str, Any]]:
    """Owners of several parts: names, rows in hex, and the digest."""
    choice = random.Random(seed)
    found: list[dict[str, Any]] = [
        {"name": "history", "dtype": "int64", "shape": [], "parts": []},
        {"name": "", "dtype": "", "shape": [], "parts": []},
    ]
    for name, dtype, shape, width in (
        ("qsa.kv", "float32", [2, 3], 24),
        ("qsa.groups", "bfloat16", [4], 8),
        ("tokens", "int64", [], 8),
        ("gdn.recurrent", "float32", [1], 4),
    ):
        parts = []
        for number in range(choice.randint(1, 3)):
            size = choice.choice((16, BLOCK))
            lo = choice.choice((0, 1, size - 1, size, size + 5))
            n = choice.choice((0, 1, size - 1, size, 2 * size + 3))
            rows = [choice.randbytes(width).hex() for _ in range(n)]
            parts.append({"numbers": [number, -1, 2**40], "lo": lo, "block": size, "rows": rows})
        found.append({"name": name, "dtype": dtype, "shape": shape, "parts": parts})
    for entry in found:
        hashed = [
            (p["numbers"], blocks(p["lo"], p["block"], [bytes.fromhex(r) for r in p["rows"]]))
            for p in entry["parts"]
        ]
        entry["digest"] = digest(entry["name"], entry["dtype"], entry["shape"], hashed)
    return found


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1) + "\n")
    sys.stdout.write(f"{VECTORS}\n")
