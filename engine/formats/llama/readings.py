"""Find the reading of a llama.cpp memory: the section list whose last byte is the file's last.

Every attempt costs a few small reads, since payloads are skipped by their stated size.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from engine.formats.llama.memory import Memory, Slot, lists_for, may_have_history
from engine.formats.llama.sections import (
    MAX_TYPE,
    Rules,
    Section,
    bounded,
    read_attention,
    read_recurrent,
)
from engine.formats.source import Damaged, Source

DSV4_MAGIC = 0x34565344
DSV4_HEAD = struct.Struct("<III")
COMPRESSED_HEAD = struct.Struct("<IIII")
COMPRESSOR_HEAD = struct.Struct("<IIIIII")
TENSOR_HEAD = struct.Struct("<iQQQ")
TRAILING_SLACK = 32
"""A reading that ends whole, with bytes left, wins over one that went on less far than this."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a whole memory."""

    memory: Memory
    roles: tuple[str, ...]
    sections: tuple[Section, ...]
    old: bool = False


@dataclass(slots=True)
class Era:
    """A variant of the section layout: sizes of the cell extension, stream field or none."""

    ext: tuple[int, ...]
    streamed: bool = True
    old: bool = True


NOW = (Era((0, 12), old=False),)
BEFORE = (Era((0, 8)), Era((0, 8), streamed=False))


@dataclass(slots=True)
class Finder:
    """Tries section lists from one offset; remembers what it read and where it failed."""

    source: Source
    rules: Rules
    architecture: str | None
    read: dict[tuple[object, ...], list[Section] | Damaged] = field(default_factory=dict)
    failures: list[Damaged] = field(default_factory=list)
    found: list[Reading] = field(default_factory=list)

    def find(self, offset: int, eras: tuple[Era, ...]) -> list[Reading]:
        """Every reading of the bytes from `offset` to the end of the file, simplest first."""
        for era in eras:
            for memory in lists_for(self.architecture):
                self.extend(memory, era, offset, (), ())
        return distinct(self.found)

    def extend(
        self,
        memory: Memory,
        era: Era,
        offset: int,
        sections: tuple[Section, ...],
        roles: tuple[str, ...],
    ) -> None:
        if len(self.found) >= 64:
            return
        if len(roles) == len(memory.slots):
            self.finish(memory, era, offset, sections, roles)
            return
        slot = memory.slots[len(roles)]
        if slot.role == "dsv4":
            self.extend_dsv4(memory, era, offset)
            return
        for section in self.options(slot, era, offset):
            self.extend(memory, era, section.stop, (*sections, section), (*roles, slot.role))

    def finish(
        self,
        memory: Memory,
        era: Era,
        offset: int,
        sections: tuple[Section, ...],
        roles: tuple[str, ...],
    ) -> None:
        left = self.source.size - offset
        if left:
            self.failures.append(
                Damaged("trailing", offset, "the end of the file", f"{left} more bytes")
            )
            return
        self.found.append(Reading(memory, roles, sections, era.old))

    def options(self, slot: Slot, era: Era, offset: int) -> list[Section]:
        """Plausible sections of one slot at `offset`."""
        if slot.role == "recurrent":
            return self.cached(("REC", offset), self.recurrent, offset)
        sections: list[Section] = []
        for values in (True, False) if slot.values is None else (slot.values,):
            for ext in era.ext:
                key = ("ATT", offset, ext, values, era.streamed)
                sections += self.cached(key, self.attention, offset, ext, values, era.streamed)
        return sections

    def attention(self, offset: int, ext: int, values: bool, streamed: bool) -> list[Section]:
        return [read_attention(self.source, offset, self.rules, ext, values, streamed)]

    def recurrent(self, offset: int) -> list[Section]:
        history = may_have_history(self.architecture)
        return read_recurrent(self.source, offset, self.rules, history)

    def cached(self, key: tuple[object, ...], read: object, *args: object) -> list[Section]:
        known = self.read.get(key)
        if known is None:
            try:
                known = read(*args)  # type: ignore[operator]
            except Damaged as failure:
                known = failure
                self.failures.append(failure)
            assert known is not None
            self.read[key] = known
        return [] if isinstance(known, Damaged) else known

    def extend_dsv4(self, memory: Memory, era: Era, offset: int) -> None:
        """The DeepSeek-V4 list: header, two attention sections, private blocks in mode 0."""
        try:
            magic, version, mode = self.source.unpack(DSV4_HEAD, offset, "a DSV4 header")
            if (magic, version) != (DSV4_MAGIC, 1):
                raise Damaged("structure", offset, "a DSV4 header", hex(magic))
        except Damaged as failure:
            self.failures.append(failure)
            return
        wanted = Slot("attention")
        for full in self.options(wanted, era, offset + DSV4_HEAD.size):
            for window in self.options(wanted, era, full.stop):
                try:
                    stop = self.private_blocks(window.stop) if mode == 0 else window.stop
                except Damaged as failure:
                    self.failures.append(failure)
                    continue
                self.finish(memory, era, stop, (full, window), ("attention", "attention-swa"))

    def private_blocks(self, offset: int) -> int:
        """Skip three compressed-key and three compressor blocks; returns the byte behind."""
        for _ in range(3):
            version, _, streams, layers = self.source.unpack(COMPRESSED_HEAD, offset, "a block")
            check_private(offset, version, 2, streams, layers)
            offset += COMPRESSED_HEAD.size
            for _ in range(layers):
                offset = self.tensor(self.layer_number(offset), streams)
        for _ in range(3):
            head = self.source.unpack(COMPRESSOR_HEAD, offset, "a compressor block")
            version, _, _, _, streams, layers = head
            check_private(offset, version, 1, streams, layers)
            offset += COMPRESSOR_HEAD.size
            for _ in range(layers):
                offset = self.layer_number(offset)
                offset = self.tensor(self.tensor(offset, streams), streams)
        return offset

    def layer_number(self, offset: int) -> int:
        bounded(self.source, offset, "a layer number", 0, 511)
        return offset + 4

    def tensor(self, offset: int, streams: int) -> int:
        type_id, _, rows, row_bytes = self.source.unpack(TENSOR_HEAD, offset, "a tensor header")
        if not 0 <= type_id <= MAX_TYPE:
            raise Damaged("structure", offset, "a ggml type", str(type_id))
        self.source.need(offset + TENSOR_HEAD.size, streams * rows * row_bytes, "a tensor")
        return offset + TENSOR_HEAD.size + streams * rows * row_bytes

    def failure(self, start: int) -> Damaged:
        """The failure that says most: the one that came furthest."""
        if not self.failures:
            return Damaged("structure", start, "cache sections", "none that fit")
        return max(self.failures, key=progress)


def progress(failure: Damaged) -> tuple[int, bool]:
    slack = TRAILING_SLACK if failure.word == "trailing" else 0
    return failure.offset + slack, failure.word == "truncated"


def check_private(offset: int, version: int, expected: int, streams: int, layers: int) -> None:
    if version != expected or streams > 256 or layers > 512:
        found = f"version {version}, {streams} streams, {layers} layers"
        raise Damaged("structure", offset, f"a private block of version {expected}", found)


def distinct(readings: list[Reading]) -> list[Reading]:
    """Readings that differ in more than the choice of an empty option."""
    kept: dict[tuple[object, ...], Reading] = {}
    for reading in readings:
        key = (reading.roles, tuple(section.key() for section in reading.sections))
        kept.setdefault(key, reading)
    return list(kept.values())
