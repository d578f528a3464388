"""Our own files as any other engine's: a capture's last state, and a saved session.

Reads headers, runs and row counts; what needs the model (digests, a restore) is the engine's.
Imports no array library.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import numpy as np
import xxhash

from engine.capture import Capture
from engine.capture_rows import SQLITE_MAGIC
from engine.digest import HASH_BYTES
from engine.errors import Unreadable
from engine.formats.opened import CellMap, Opened, no_cells, no_norms
from engine.formats.options import Options
from engine.formats.positions import Survey, survey, survey_ranges
from engine.formats.report import (
    Code,
    Finding,
    Part,
    Report,
    Sequence,
    missing_text,
    ordered,
    sentence,
    span_text,
)
from engine.formats.rows import SLICE_BYTES, any_bad
from engine.formats.safetensors import Archive, Tensor, integers
from engine.formats.source import Source
from engine.snapshot import SequenceView, Snapshot
from engine.terms import GROUP_SIZE

SESSION = "bankflip-session-"
MAX_KEYS = 4096
ROLES = {"qsa.kv": "attention", "qsa.index": "index", "qsa.groups": "index"}


def is_capture_file(source: Source) -> bool:
    return source.bytes(0, len(SQLITE_MAGIC)) == SQLITE_MAGIC


def read_capture(source: Source, options: Options) -> Opened:
    """Report of the state that a capture ends with."""
    try:
        with Capture(source.path) as capture:
            last = capture.snapshot_at(len(capture) - 1)
            counts = capture.counts()
    except (Unreadable, OSError, sqlite3.Error) as error:
        return Opened(damaged_capture(source, str(error)), source)
    findings = []
    if last.broken:
        findings.append(
            Finding(Code.INCONSISTENT, f"the session stopped publishing: {last.broken}")
        )
    size = group_size(options, last.group_size)
    sequences = tuple(captured(view, size) for view in last.sequences if view.n_live)
    facts = (
        ("records", sum(counts.values())),
        ("outcomes", counts),
        ("model", last.model),
        ("flips", last.flips),
    )
    report = Report(
        file=str(source.path),
        format="bankflip",
        findings=tuple(findings),
        reason=sentence(tuple(findings)) or sound_reason(sequences),
        sequences=sequences,
        facts=facts,
    )
    return Opened(report, source, Cells(last).cells, no_norms)


def damaged_capture(source: Source, words: str) -> Report:
    """A capture that can't be read; cut where its header says that it has more pages."""
    page, pages = int.from_bytes(source.bytes(16, 2), "big"), source.bytes(28, 4)
    whole = (65_536 if page == 1 else page) * int.from_bytes(pages, "big")
    if source.size < max(100, whole):
        words = f"the file ends at byte {source.size}, its pages at byte {max(100, whole)}"
        found = Finding(Code.TRUNCATED, words, offset=source.size)
        return Report(str(source.path), "bankflip", (found,), reason=words, detail="truncated")
    words = words.removeprefix(f"{source.path}: ")
    found = Finding(Code.UNREADABLE, words)
    return Report(str(source.path), "bankflip", (found,), reason=words, detail="structure")


def group_size(options: Options, own: int) -> int:
    """The size that was asked for; the file's own where the default was left."""
    return options.group_size if options.group_size != GROUP_SIZE or own < 1 else own


def captured(view: SequenceView, size: int) -> Sequence:
    found = survey_ranges([(view.start, view.stop)], size)
    part = Part("history", "attention", None, found.run, found.live)
    return found.sequence(view.seq, found.clean, (part,))


def sound_reason(sequences: tuple[Sequence, ...]) -> str:
    runs = [
        f"sequence {own.id} holds {span_text(own.run)}" for own in sequences if own.run is not None
    ]
    more = f"; and {len(runs) - 4} more" if len(runs) > 4 else ""
    return "; ".join(runs[:4]) + more if runs else "no sequence holds a position"


class Cells:
    """The cells of a captured state, as its extents have them."""

    def __init__(self, state: Snapshot) -> None:
        self.state = state
        self.views = [view for view in state.sequences if view.n_live]

    def cells(self, index: int) -> CellMap:
        own = self.views[index]
        if not own.extents:
            return no_cells(index)
        stop = max(cell + n for view in self.views for cell, n in view.extents)
        positions = np.full(stop, -1, np.int64)
        owners = np.zeros(stop, np.int64)
        for view in self.views:
            for cell, n in view.extents:
                owners[cell : cell + n] += 1
        at = own.start
        for cell, n in own.extents:
            positions[cell : cell + n] = np.arange(at, at + n)
            at += n
        return CellMap(positions, positions >= 0, owners)


def is_saved_session(archive: Archive) -> bool:
    return "bankflip" in archive.metadata


def read_saved_session(source: Source, archive: Archive, options: Options) -> Opened:
    """Report of a saved session: runs, rows of every owner, values that are not finite."""
    about = about_of(archive.metadata["bankflip"])
    if archive.cut or about is None:
        return Opened(unusable_session(source, archive, about is None), source)
    by_key: dict[str, dict[str, Tensor]] = {}
    for name, tensor in archive.tensors.items():
        head, _, rest = name.partition(".")
        by_key.setdefault(head, {})[rest] = tensor
    findings: list[Finding] = []
    sequences = []
    size = group_size(options, about.get("group_size", GROUP_SIZE))
    for number, entry in enumerate(about["keys"][:MAX_KEYS]):
        reader = KeyReader(source, entry, by_key.get(str(number), {}), findings)
        sequence = reader.sequence(size, about.get("group_size", GROUP_SIZE))
        if sequence is not None:
            sequences.append(sequence)
    findings += hash_findings(source, archive, about)
    found = ordered(findings)
    report = Report(
        file=str(source.path),
        format="bankflip",
        findings=found,
        reason=sentence(found) or sound_reason(tuple(sequences)),
        sequences=tuple(sequences),
        facts=(("model", about.get("model")), ("remarks", [HASHES if "hashes" in about else OLD])),
    )
    return Opened(report, source)


HASHES = "every tensor was compared with the hash it was saved with; loading recomputes all digests"
OLD = (
    "an older file without hashes of its tensors: digests are compared when it is loaded, not here"
)


def hash_findings(source: Source, archive: Archive, about: dict[str, Any]) -> list[Finding]:
    """Tensors that are missing, were added, or whose bytes are not those that were saved."""
    hashes = about.get("hashes", {})
    if not isinstance(hashes, dict):
        return [Finding(Code.INCONSISTENT, "the metadata hold no list of hashes", offset=8)]
    found: list[Finding] = []
    for name in sorted({*hashes, *archive.tensors} if hashes else ()):
        tensor = archive.tensors.get(name)
        if tensor is None:
            code, words = Code.MISSING, "that was saved is not there"
        elif name not in hashes:
            code, words = Code.INCONSISTENT, "is not one that was saved"
        elif hash_of(source, tensor) != hashes[name]:
            code, words = Code.INCONSISTENT, "does not hold the bytes that were saved"
        else:
            continue
        number, _, part = name.partition(".")
        key = key_of(about["keys"], number)
        where = tensor.offset if tensor is not None else None
        whose = f"sequence {key}: " if key is not None else ""
        found.append(Finding(code, f"{whose}tensor {name} {words}", key, part, None, where))
    return found


def key_of(keys: list[dict[str, Any]], number: str) -> int | str | None:
    """The sequence or slot of a number in the names of tensors."""
    if not number.isascii() or not number.isdigit() or len(number) > 9 or int(number) >= len(keys):
        return None
    key = keys[int(number)].get("key")
    return key if isinstance(key, (int, str)) else None


def hash_of(source: Source, tensor: Tensor) -> str:
    """xxh3-128 of a tensor's bytes, read in slices."""
    hasher = xxhash.xxh3_128()
    for start in range(0, tensor.n_bytes, SLICE_BYTES):
        n = min(SLICE_BYTES, tensor.n_bytes - start)
        hasher.update(source.bytes(tensor.offset + start, n))
    return hasher.intdigest().to_bytes(HASH_BYTES, "little").hex()


def about_of(text: str) -> dict[str, Any] | None:
    """The session's metadata; None where they are not of the known format."""
    try:
        about = json.loads(text)
        json.dumps(about, ensure_ascii=False).encode()  # halves of a pair can't be written
    except (ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or not str(about.get("format")).startswith(SESSION):
        return None
    keys, size = about.get("keys"), about.get("group_size", GROUP_SIZE)
    if not isinstance(keys, list) or not all(isinstance(entry, dict) for entry in keys):
        return None
    return about if type(size) is int and 0 < size <= 1 << 20 else None


def unusable_session(source: Source, archive: Archive, malformed: bool) -> Report:
    if malformed:
        words, code, detail = "metadata of a saved session expected", Code.UNREADABLE, "structure"
    else:
        words = (
            f"the file ends at byte {source.size}, its tensors at byte {archive.stop}: "
            f"{len(archive.cut)} of {len(archive.tensors)} tensors are cut"
        )
        code, detail = Code.TRUNCATED, "truncated"
    found = Finding(code, words, offset=source.size if not malformed else 8)
    return Report(str(source.path), "bankflip", (found,), reason=words, detail=detail)


class KeyReader:
    """One sequence or slot of a saved session."""

    def __init__(
        self,
        source: Source,
        entry: dict[str, Any],
        tensors: dict[str, Tensor],
        findings: list[Finding],
    ) -> None:
        self.source, self.entry, self.tensors, self.findings = source, entry, tensors, findings
        key = entry.get("key")
        self.name: int | str = key if isinstance(key, (int, str)) else "?"

    def add(self, code: Code, words: str, part: str | None = None, at: int | None = None) -> None:
        words = f"sequence {self.name}: {words}"
        self.findings.append(Finding(code, words, self.name, part, None, at))

    def sequence(self, size: int, own_size: int) -> Sequence | None:
        """The sequence, or None where it holds nothing."""
        tensor = self.tensors.get("positions")
        if tensor is None:
            self.add(Code.MISSING, "no positions", "positions")
            return None
        values = integers(self.source, tensor, limit=1 << 24)
        if values is None:
            self.add(Code.INCONSISTENT, "positions are no integers", "positions", tensor.offset)
            return None
        found = survey(values, size)
        if found.holes:
            self.add(Code.HOLE, missing_text(found.holes), "positions", tensor.offset)
        if found.duplicates:
            words = f"position {found.duplicates[0]} is there more than once"
            self.add(Code.DUPLICATE, words, "positions", tensor.offset)
        named = (self.entry.get("start"), self.entry.get("stop"))
        if found.run is not None and named != found.run:
            words = f"the metadata say {named[0]} to {named[1]}, the positions {found.run}"
            self.add(Code.INCONSISTENT, words, "positions", tensor.offset)
        tokens = self.tensors.get("tokens")
        if tokens is not None and tokens.shape != (self.entry.get("consumed"),):
            words = f"{tokens.shape} tokens, expected {self.entry.get('consumed')}"
            self.add(Code.INCONSISTENT, words, "tokens", tokens.offset)
        parts = [self.part(name, own, found, own_size) for name, own in self.owners().items()]
        kept = tuple(part for part in parts if part is not None)
        if found.run is None:
            return None
        history = Part("history", "attention", None, found.run, found.live, found.holes)
        return found.sequence(self.name, found.clean, (history, *kept))

    def owners(self) -> dict[str, list[Tensor]]:
        """Tensors of each owner and layer, by `qsa.kv.3`."""
        found: dict[str, list[Tensor]] = {}
        for name, tensor in sorted(self.tensors.items()):
            owner = name.rsplit(".", 1)[0]
            if "." in name and not name.startswith("checkpoint."):
                found.setdefault(owner, []).append(tensor)
        return found

    def part(self, name: str, tensors: list[Tensor], found: Survey, own_size: int) -> Part | None:
        """A layer of an owner: its rows against the positions, its values finite."""
        bad = [tensor for tensor in tensors if any_bad(self.source, tensor)]
        if bad:
            self.add(
                Code.NON_FINITE, f"{name} holds values that are not finite", name, bad[0].offset
            )
        role = ROLES.get(name.rsplit(".", 1)[0])
        if role is None or found.run is None:
            return None
        expected = found.live // own_size if "groups" in name else found.live
        rows = {tensor.shape[0] if tensor.shape else 0 for tensor in tensors}
        if rows != {expected}:
            code = Code.TORN if role == "attention" else Code.INDEX_DRIFT
            words = f"{name} has {', '.join(map(str, sorted(rows)))} rows, expected {expected}"
            self.add(code, words, name, tensors[0].offset)
        count = min(rows)
        if "groups" in name:
            count = min(count * own_size, found.live)
        start = found.run[0]
        return Part(name, role, None, (start, start + count) if count else None, count)
