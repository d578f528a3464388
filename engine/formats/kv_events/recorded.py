"""The reader of recorded event streams: JSON lines, one message a line."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from engine.formats.kv_events.chains import Chain, parent_key
from engine.formats.kv_events.messages import Batch, Undecodable, decode
from engine.formats.kv_events.publisher import Publisher
from engine.formats.kv_events.report import report_of
from engine.formats.kv_events.streams import Streams
from engine.formats.opened import CellMap, Opened, no_norms
from engine.formats.options import Options
from engine.formats.report import Code, Finding
from engine.formats.source import Source

HEAD_BYTES = 1 << 16
END_MARKERS = (-1, 2**64 - 1)
LINES_NAMED = 64


def is_recorded_stream(source: Source) -> bool:
    """JSON lines with numbers and payloads; the first line may be damaged."""
    head = source.bytes(0, HEAD_BYTES)
    return b'"payload_b64"' in head and b'"seq"' in head


def read_recorded_stream(source: Source, options: Options) -> Opened:
    """Report of a recorded stream."""
    streams = Streams(options.last_copy_only)
    findings: list[Finding] = []
    for offset, line, whole in lines(source):
        record = record_of(line)
        if record is None:
            findings += bad_line(offset, line, whole, len(findings))
        elif record["seq"] not in END_MARKERS:
            feed(streams, record)
    publishers = streams.ordered()
    for publisher in publishers:
        publisher.give_up()
    report, shown = report_of(str(source.path), publishers, options.group_size, findings)
    return Opened(report, source, Blocks(shown).cells, no_norms)


def lines(source: Source) -> Iterator[tuple[int, bytes, bool]]:
    """Offset, bytes, and whether a line end follows, of every line that is not blank."""
    start = 0
    while start < source.size:
        stop = source.data.find(b"\n", start)
        whole = stop >= 0
        stop = stop if whole else source.size
        line = source.bytes(start, stop - start).strip()
        if line:
            yield start, line, whole
        start = stop + 1


def record_of(line: bytes) -> dict[str, Any] | None:
    """A line's fields; None where it isn't a message."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    if not isinstance(record, dict) or type(record.get("seq")) is not int:
        return None
    number = record["seq"]
    if not isinstance(record.get("payload_b64"), str):
        return None
    return record if number in END_MARKERS or 0 <= number < 2**63 else None


def bad_line(offset: int, line: bytes, whole: bool, found: int) -> list[Finding]:
    """A line that is no message: the file was cut in it, or it is damaged."""
    if not whole:
        words = f"the last line, at byte {offset}, ends in the middle of a message"
        return [Finding(Code.TRUNCATED, words, offset=offset)]
    if found >= LINES_NAMED:
        return []
    words = f"the line at byte {offset} is no message: {line[:40].decode('utf-8', 'replace')!r}"
    return [Finding(Code.UNDECODABLE, words, offset=offset)]


def feed(streams: Streams, record: dict[str, Any]) -> None:
    """Give one message to its publisher, which its port and rank name."""
    port = record.get("port")
    port = port if isinstance(port, (int, str)) and not isinstance(port, bool) else None
    streams.feed(port, record["seq"], batch_of(record))


def batch_of(record: dict[str, Any]) -> Batch | None:
    """The decoded payload; None where it does not decode."""
    try:
        payload = binascii.a2b_base64(record["payload_b64"].encode("ascii"), strict_mode=True)
        length = record.get("payload_len")
        if type(length) is int and length != len(payload):
            return None
        return decode(payload)
    except (binascii.Error, UnicodeEncodeError, Undecodable, ValueError):
        return None


class Blocks:
    """Cell maps of chains: one cell a block, in the order of the path."""

    def __init__(self, shown: list[tuple[Publisher, Chain]]) -> None:
        self.shown = shown

    def cells(self, index: int) -> CellMap:
        publisher, chain = self.shown[index]
        blocks = publisher.inventory.blocks
        path = []
        key = chain.leaf
        for _ in range(len(blocks)):
            path.append(key)
            above = parent_key(key, blocks[key])
            if above is None or above not in blocks:
                break
            key = above
        path.reverse()
        sizes = np.array([blocks[key].size for key in path], np.int64)
        resident = np.array([blocks[key].resident for key in path], np.bool_)
        starts = np.cumsum(sizes) - sizes
        copies = np.array([sum(blocks[key].copies.values()) for key in path], np.int64)
        return CellMap(np.where(resident, starts, -1), resident, copies)
