"""Damage files on purpose: bytes, lengths, JSON headers, records and payloads inside them.

Run as a program it reads mutants in its own process with limits on memory and time:
`python -m tests.helpers.mutate SEED COUNT [START]` prints one JSON line with what it saw.
"""

from __future__ import annotations

import base64
import json
import random
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[1] / "data" / "samples"
MEMORY = 200 << 20
SECONDS = 5
NUMBERS = (0, 1, 2, 3, 255, 256, 1 << 16, (1 << 20) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1 << 31,
    1 << 62,
    1 << 70,
    1.5,
    "",
    "KVCache",
    "CacheList",
    [],
    {},
    [[]],
)


def bases() -> list[tuple[str, bytes]]:
    """Every sample file, and a few that no sample covers, by name."""
    files = sorted(
        path
        for path in SAMPLES.rglob("*")
        if path.is_file() and path.suffix not in (".json", ".md")
    )
    found = [(f"{path.parent.name}/{path.name}", path.read_bytes()) for path in files]
    return [*found, *made_files(), ("pickle", b"\x80\x04K\x01.")]


def made_files() -> list[tuple[str, bytes]]:
    """Kinds of state that no sample has."""
    from tests.helpers import llama_files as llama
    from tests.helpers import prompt_files as prompts

    whole, newest = (llama.attention([llama.text(range(*own))]) for own in ((20,), (12, 20)))
    keys = llama.attention([llama.text(range(20))], ext=12, value=None)
    state = llama.recurrent([llama.Cell(19, ())], ple=(0,))
    streams = llama.attention([llama.text(range(9), (seq,)) for seq in range(3)], trans=True)
    image = [*llama.text(range(6)), *llama.image(6, 3, 2), *llama.text(range(9, 14))]
    ring = [prompts.rows(16), prompts.rows(16)]
    padded = [prompts.rows(9, 2), prompts.rows(9, 2)]
    numbers = [prompts.ints(6, 9), prompts.ints(3, 0)]
    layers = [
        ("RotatingKVCache", ring, ["4", "16", "30", "9"]),
        ("ChunkedKVCache", ring, ["16", "4"]),
        ("ArraysCache", ring, []),
    ]
    return [
        ("transformers", transformers_file()),
        ("dsv4", llama.sequence_file(llama.dsv4(whole, newest))),
        ("ple", llama.sequence_file(keys, state, keys)),
        ("streams", llama.session_file("llama", streams, words=(-1, 1, 2, 5, 6, 0))),
        ("image", llama.sequence_file(llama.attention([image], ext=12))),
        ("old", llama.session_file("llama", whole, version=9)),
        ("raw", llama.raw_sequence(3, whole, newest)),
        ("ring.safetensors", prompts.layout1(layers)),
        ("batch.safetensors", prompts.layout1([("BatchKVCache", padded + numbers, [])])),
    ]


def transformers_file() -> bytes:
    header: dict[str, Any] = {"__metadata__": {"layers.0.class": "DynamicLayer"}}
    payload = b""
    for layer in range(2):
        for side in ("keys", "values"):
            data = struct.pack("<96e", *[0.5 + i for i in range(96)])
            header[f"layers.{layer}.{side}"] = {
                "dtype": "F16",
                "shape": [1, 2, 12, 4],
                "data_offsets": [len(payload), len(payload) + len(data)],
            }
            payload += data
    return with_header(header, payload)


def with_header(header: Any, payload: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + payload


def flip(data: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        if data:
            # headers are where damage is interesting
            top = len(data) if rng.random() < 0.5 else min(len(data), 600)
            data[rng.randrange(top)] ^= 1 << rng.randrange(8)
    return data


def cut(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(len(data) + 1)]


def insert(data: bytearray, rng: random.Random) -> bytearray:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 2, 4, 8, 64, 1000))) + data[at:]


def remove(data: bytearray, rng: random.Random) -> bytearray:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 4, 8, 64)) :]


def repeat(data: bytearray, rng: random.Random) -> bytearray:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((8, 100, 4000))]
    return data[:start] + piece * rng.choice((2, 3, 20)) + data[start:]


def length(data: bytearray, rng: random.Random) -> bytearray:
    """Overwrite a small little-endian number, as counts are, by another."""
    places = [
        at
        for at in range(min(len(data) - 4, 4000))
        if data[at + 2] == data[at + 3] == 0 and (data[at] or data[at + 1])
    ]
    if not places:
        return flip(data, rng)
    at = rng.choice(places)
    old = struct.unpack_from("<I", data, at)[0]
    new = rng.choice((*NUMBERS, old + 1, max(0, old - 1), old * 2, old * 1000))
    struct.pack_into("<I", data, at, new & 0xFFFFFFFF)
    return data


def number_text(data: bytearray, rng: random.Random) -> bytearray:
    """Overwrite a number that stands as digits."""
    places = [at for at in range(min(len(data), 20_000)) if 48 <= data[at] <= 57]
    if not places:
        return flip(data, rng)
    at = rng.choice(places)
    new = rng.choice((b"0", b"-1", b"9" * 5, b"9" * 25, b"4294967296", b"1e9", b""))
    return data[:at] + new + data[at + 1 :]


def mutate_json(value: Any, rng: random.Random) -> Any:
    """One value somewhere inside changed, dropped, doubled or moved."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        chance = rng.random()
        if chance < 0.15:
            return {own: entry for own, entry in value.items() if own != key}
        if chance < 0.25:
            other = rng.choice(list(value))
            return {**value, key: value[other]}
        if chance < 0.32:
            return {**value, rng.choice(("9.0", "0.0.1", "2.0", "x", key + ".1")): value[key]}
        return {**value, key: mutate_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        chance = rng.random()
        if chance < 0.15:
            return value[:at] + value[at + 1 :]
        if chance < 0.25:
            return value[:at] + [value[at]] * rng.choice((2, 3, 40)) + value[at + 1 :]
        return [*value[:at], mutate_json(value[at], rng), *value[at + 1 :]]
    if type(value) is int:
        return rng.choice((value + 1, value - 1, value * 2, -value, 0, 1 << 40, 1 << 70))
    return rng.choice(VALUES)


def header_json(data: bytearray, rng: random.Random) -> bytearray:
    """A safetensors header changed as JSON, its length kept right."""
    if len(data) < 9:
        return flip(data, rng)
    (count,) = struct.unpack_from("<Q", data)
    try:
        header = json.loads(bytes(data[8 : 8 + count]))
    except ValueError:
        return flip(data, rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        header = mutate_json(header, rng)
    return bytearray(with_header(header, bytes(data[8 + count :])))


def scalars(data: bytearray, rng: random.Random) -> bytearray:
    """The small tensors of a safetensors file overwritten: offsets, indices, paddings."""
    try:
        (count,) = struct.unpack_from("<Q", data)
        header = json.loads(bytes(data[8 : 8 + count]))
    except (ValueError, struct.error):
        return flip(data, rng)
    spans = [
        entry["data_offsets"]
        for entry in header.values()
        if isinstance(entry, dict) and entry.get("dtype") == "I32" and len(entry["shape"]) < 2
    ]
    for span in rng.sample(spans, min(len(spans), rng.choice((1, 1, 3)))):
        at = 8 + count + span[0]
        if at + 4 <= len(data):
            value = rng.choice((-1, 0, 1, 5, 255, 256, 257, 1 << 20, -(1 << 31), (1 << 31) - 1))
            struct.pack_into("<i", data, at, value)
    return data


def lines(data: bytearray, rng: random.Random) -> bytearray:
    """Lines of a text doubled, dropped, swapped or joined."""
    found = bytes(data).split(b"\n")
    for _ in range(rng.choice((1, 1, 3))):
        at, other = rng.randrange(len(found)), rng.randrange(len(found))
        found[at], found[other] = found[other], found[at]
        if rng.random() < 0.3:
            found[at:at] = [found[other]] * rng.choice((1, 2, 50))
        if rng.random() < 0.2 and len(found) > 1:
            del found[at]
    return bytearray(b"\n".join(found))


def events(data: bytearray, rng: random.Random) -> bytearray:
    """A record's fields or its msgpack payload changed, lengths kept right."""
    import msgspec

    found = bytes(data).split(b"\n")
    at = rng.randrange(len(found))
    try:
        record = json.loads(found[at])
        payload = msgspec.msgpack.decode(base64.b64decode(record["payload_b64"]))
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        return lines(data, rng)
    if rng.random() < 0.3:
        record = mutate_json(record, rng)
    else:
        for _ in range(rng.choice((1, 1, 2, 6))):
            payload = mutate_json(payload, rng)
        try:
            raw = msgspec.msgpack.encode(payload)
        except (OverflowError, ValueError, msgspec.MsgspecError):
            return flip(data, rng)
        record |= {"payload_b64": base64.b64encode(raw).decode(), "payload_len": len(raw)}
    found[at] = json.dumps(record).encode()
    return bytearray(b"\n".join(found))


BINARY = (flip, flip, cut, insert, remove, repeat, length, length, length)
TENSORS = (flip, cut, insert, length, header_json, header_json, header_json, scalars, scalars)
TEXT = (flip, cut, insert, remove, repeat, lines, number_text, number_text)
RECORDS = (flip, cut, lines, number_text, events, events, events, events)


def operations(name: str) -> tuple[Callable[[bytearray, random.Random], bytearray], ...]:
    if name.endswith(".safetensors") or name == "transformers":
        return TENSORS
    if name.endswith(".jsonl"):
        return RECORDS
    return TEXT if name.endswith(".log") else BINARY


def mutant(files: list[tuple[str, bytes]], seed: int, number: int) -> tuple[str, bytes]:
    """Mutant `number` of a seed: the name of its base, and its bytes."""
    rng = random.Random(f"{seed}/{number}")
    name, base = rng.choice(files)
    data = bytearray(base)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            data = rng.choice(operations(name))(bytearray(data), rng)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, struct.error):
            data = flip(data, rng)  # an earlier change left nothing that this one could change
        data = data[: 1 << 20]
    if rng.random() < 0.02:
        data = data[: rng.randrange(len(data) + 1)] + bytearray(rng.choice(files)[1])
    return name, bytes(data[: 1 << 20])


def use(data: bytes) -> str:
    """Read one file as the command and the window do; the verdict."""
    from app.cli.check_text import report_lines
    from engine.formats import Options, read_source
    from engine.formats.source import Source

    with read_source(Source(Path("mutant"), data, len(data)), Options(payload=True)) as opened:
        report = opened.report
        json.dumps(report.to_json())
        "\n".join(report_lines(report))
        for index, sequence in enumerate(report.sequences[:4]):
            opened.cell_map(index)
            for part in sequence.parts[:3]:
                opened.row_norms(part.name, index)
        return report.verdict


class TooSlow(Exception):
    """One file took more than its share of processor time."""


def alarm(*_: object) -> None:
    raise TooSlow(f"more than {SECONDS} s")


def peak_kb() -> int:
    """Most memory that this program held so far (its parent's does not count, as in rusage)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def limit() -> None:
    """From here on this process may map `MEMORY` more bytes; `timed` may stop it."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
    signal.signal(signal.SIGVTALRM, alarm)


def timed(data: bytes) -> str:
    """`use` with a limit on processor time. Raises: TooSlow."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        return use(data)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def run(seed: int, count: int, start: int) -> dict[str, Any]:
    """Read mutants; what was seen, and the first ones that ended otherwise than in a report."""
    files = bases()
    use(files[0][1])
    use(next(data for name, data in files if name.endswith(".safetensors")))
    limit()
    before = peak_kb()
    verdicts: dict[str, int] = {}
    failures: list[dict[str, Any]] = []
    slowest = (0.0, -1)
    for number in range(start, start + count):
        name, data = mutant(files, seed, number)
        began = time.process_time()
        try:
            verdict = timed(data)
            verdicts[verdict] = verdicts.get(verdict, 0) + 1
        except BaseException as error:
            text = "".join(traceback.format_exception(error)[-6:])
            failures.append({"number": number, "base": name, "error": text})
            if len(failures) >= 10 or isinstance(error, KeyboardInterrupt):
                break
        slowest = max(slowest, (time.process_time() - began, number))
    return {
        "seed": seed,
        "verdicts": verdicts,
        "failures": failures,
        "slowest_s": round(slowest[0], 3),
        "slowest": slowest[1],
        "grown_mb": (peak_kb() - before) // 1024,
    }


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]]
    print(json.dumps(run(arguments[0], arguments[1], arguments[2] if arguments[2:] else 0)))
