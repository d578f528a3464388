"""Saved sessions: the public state as one safetensors file, written atomically, read suspiciously.

A file is written under a temporary name, synced and renamed. A restored one goes into the private
bank, is checked completely (names, shapes, dtypes, finite values, positions, counts, digests) and
only then flipped; a bad file changes nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
import numpy as np
import xxhash

from engine import look as looking
from engine.atomic import replacing
from engine.bank import Bank, Checkpoint
from engine.digest import block_hash, canonical
from engine.errors import InvariantBroken, Malformed, Rejected, Unreadable
from engine.history import History
from engine.lineage import Event, Lineage, TokenLog
from engine.memory import admit_bytes
from engine.ops import Append, Reset, Save
from engine.owner import Changes, Key, to_numpy
from engine.owners.fixed import FixedOwner
from engine.owners.groups import GroupOwner
from engine.owners.history import ORDINAL
from engine.owners.positional import PositionalOwner
from engine.rules import apply
from engine.snapshot import Record
from engine.tensor_file import STORED, TensorFile
from engine.tensor_header import read_header
from engine.terms import MAX_POSITION

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.graph.model import Model

FORMAT: Final = "bankflip-session-1"
KINDS: Final = ("start", "evict", "shift")
MAX_SEQUENCE: Final = 2**62
"""Sequence numbers stand in digests as int64."""


def fingerprint(model: Model | None) -> str:
    """What tells models apart: configuration, dtype, and a sample of the weights."""
    if model is None:
        return "none"
    hasher = xxhash.xxh3_128(f"{model.config!r}{model.dtype}".encode())
    for array in (model.embed[:64], model.head[:64, :64]):
        hasher.update(np.ascontiguousarray(to_numpy(array)).tobytes())
    return hasher.hexdigest()


# writing


def save_session(engine: Engine, path: str | os.PathLike[str]) -> None:
    """Write the public state; the file is the old one or the new one at any moment.

    Raises: OSError when it cannot be written.
    """
    bank = engine.pair.public_bank
    tensors: dict[str, mx.array] = {}
    keys = []
    for number, key in enumerate(bank.looks()):
        keys.append(_describe(bank, key))
        tensors.update((f"{number}.{name}", array) for name, array in _tensors(bank, key))
    about: dict[str, Any] = {
        "format": FORMAT,
        "model": engine.name,
        "fingerprint": fingerprint(engine.model),
        "group_size": bank.history.value.group_size,
        "capacity": bank.history.value.capacity,
        "window": bank.history.value.window,
        "keys": keys,
        "digests": dict(bank.digests(recompute=True)),
    }
    if not tensors:
        tensors["nothing"] = mx.zeros((1,), mx.int32)
    about["hashes"] = {name: tensor_hash(array) for name, array in tensors.items()}
    _write_atomically(Path(path), tensors, json.dumps(about, sort_keys=True))


def tensor_hash(array: mx.array) -> str:
    """32 hex digits of a tensor's little-endian bytes: what a check without a model compares."""
    return block_hash(canonical(to_numpy(array))).hex()


def _describe(bank: Bank, key: Key) -> dict[str, Any]:
    history = bank.history.value
    run = (history.of(key) if isinstance(key, int) else history.slots[key]).run
    entry: dict[str, Any] = {"key": key, "start": run.start, "stop": run.stop}
    entry["origin"] = bank.history.origins.get(key)
    if bank.with_model:
        lineage = bank.tokens.of(key)
        entry["events"] = [[e.count, e.kind, e.value] for e in lineage.events]
        entry["consumed"] = lineage.consumed
        entry["checkpoints"] = [c.count for c in bank.checkpoints.get(key, ())]
    return entry


def _tensors(bank: Bank, key: Key) -> Iterator[tuple[str, mx.array]]:
    """Every tensor of one key, rows in logical order."""
    look, history = bank.look(key), bank.history.value
    run = (history.of(key) if isinstance(key, int) else history.slots[key]).run
    yield "positions", mx.array(np.arange(run.start, run.stop, dtype=np.int32))
    if not bank.with_model:
        return
    yield "tokens", mx.array(bank.tokens.of(key).log.slice(0, look.consumed))
    for owner in bank.positional():
        lo, hi, _ = owner.units(look)
        for p in owner.places:
            if p.place != ORDINAL:
                name = f"{owner.name}.{p.layer}.{p.part}"
                yield name, owner.unit_rows(p.place, look, lo, hi)
    for fixed in bank.fixed():
        for layer, value in fixed.values.get(key, {}).items():
            yield f"{fixed.name}.{layer}.", value
    for mark in bank.checkpoints.get(key, ()):
        for name, values in mark.values:
            for layer, value in values.items():
                yield f"checkpoint.{mark.count}.{name}.{layer}.", value


def _write_atomically(path: Path, tensors: dict[str, mx.array], about: str) -> None:
    # the array library appends the suffix where it is missing
    with replacing(path, ".safetensors") as beside:
        try:
            mx.save_safetensors(str(beside), tensors, {"bankflip": about})
        except RuntimeError as error:
            raise OSError(f"{path}: cannot be written: {error}") from error


# reading


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of a saved session, checked for shape. Raises: Unreadable, Malformed."""
    return _about(str(path), read_header(path).metadata)


def _about(path: str, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        about = json.loads(metadata["bankflip"])
        json.dumps(about, ensure_ascii=False).encode()  # halves of a pair can't be written
    except (KeyError, ValueError, RecursionError):
        raise Unreadable(path, "not a saved session", "metadata bankflip", "none") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        found = about.get("format") if isinstance(about, dict) else type(about).__name__
        raise Unreadable(path, "format of the session", FORMAT, str(found)[:40])
    kinds = {"keys": list, "digests": dict, "model": str, "capacity": int, "group_size": int}
    for name, kind in kinds.items():
        if type(about.get(name)) is not kind:
            raise Malformed(path, f"metadata {name}", kind.__name__, repr(about.get(name))[:40])
    return about


def load_session(engine: Engine, path: str | os.PathLike[str]) -> Record:
    """Replace the session by a saved one; returns the journal's record.

    Raises: Unreadable or Malformed with the name of what is wrong, Rejected when busy; the
    session is then as before.
    """
    begun = time.perf_counter_ns()
    engine.require_idle("load")
    before = engine.digests()
    file = TensorFile(path)
    about = _about(str(path), file.header.metadata)
    if about.get("fingerprint") != fingerprint(engine.model):
        raise Malformed(str(path), "model of the session", engine.name or "none", about["model"])
    private, size = engine.pair.private_bank, engine.pair.public_bank.history.value.group_size
    if about["group_size"] != size:
        raise Malformed(str(path), "group size of the session", str(size), str(about["group_size"]))
    device = engine.model.backend.name if engine.model else "cpu"
    admit_bytes(str(path), "tensors", file.n_bytes, device)
    reader = _Reader(file, about, engine)
    try:
        reader.fill(private)
    except BaseException:
        private.spoiled = True
        raise
    engine.publish_loaded()
    record = looking.record_of(
        engine,
        Append(0, (0,)),
        None,
        None,
        before,
        engine.digests(),
        time.perf_counter_ns() - begun,
    )
    engine.n_records += 1
    told = f"restored {len(about['keys'])} sequences and slots from {Path(path).name}"
    op_json = json.dumps({"op": "load", "file": Path(path).name})
    return replace(record, txn=engine.number, op="load", op_json=op_json, sentence=told, n_tokens=0)


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and type(value[0]) is int
        and value[1] in KINDS
        and type(value[2]) is int
    )


class _Reader:
    """Fills a bank from a file whose header was checked."""

    def __init__(self, file: TensorFile, about: dict[str, Any], engine: Engine) -> None:
        self.file, self.path, self.about, self.engine = file, file.path, about, engine
        self.used: set[str] = {"nothing"}

    def bad(self, what: str, expected: object, found: object) -> Malformed:
        return Malformed(self.path, what, str(expected)[:80], str(found)[:80])

    def take(self, name: str, shape: tuple[int, ...], dtype: mx.Dtype) -> mx.array:
        """One tensor, read and finite. Raises: Malformed, Unreadable."""
        if name not in self.file.header.tensors:
            raise self.bad(f"tensor {name}", "to be there", "nothing")
        stored, stored_shape = self.file.header.tensors[name]
        if stored not in STORED or STORED[stored][1] != dtype:
            raise self.bad(f"dtype of tensor {name}", dtype, stored)
        if stored_shape != shape:
            raise self.bad(f"shape of tensor {name}", list(shape), list(stored_shape))
        array = self.file.read(name)
        if mx.issubdtype(dtype, mx.floating) and not bool(mx.all(mx.isfinite(array))):
            raise self.bad(f"tensor {name}", "finite values", "NaN or infinity")
        self.used.add(name)
        return array

    def fill(self, bank: Bank) -> None:
        """Make `bank` what the file says, seal it, and compare every digest."""
        entries = [self._entry(number, e) for number, e in enumerate(self.about["keys"])]
        history = self._history(entries)
        fresh = Bank.empty(history, self.engine.layout, bank.with_model)
        bank.adopt(fresh.owners)
        bank.checkpoints = {}
        bank.changes, bank.touched, bank.spoiled = Changes(), Changes(), False
        for owner in bank.positional():
            owner.ensure(history.n_cells)
        for number, entry in enumerate(entries):
            self._fill_key(bank, number, entry)
        extra = sorted(set(self.file.header.tensors) - self.used)
        if extra:
            raise self.bad(f"tensor {extra[0]}", "no such tensor", "one")
        try:
            bank.evaluate(*bank.prepare())
            bank.seal()
            bank.check()
        except (InvariantBroken, RuntimeError) as error:
            raise self.bad("contents", "a whole session", error) from error
        for name, digest in bank.digests(recompute=True):
            if self.about["digests"].get(name) != digest:
                raise self.bad(f"digest of {name}", self.about["digests"].get(name), digest)

    def _entry(self, number: int, entry: Any) -> dict[str, Any]:
        if not isinstance(entry, dict):
            raise self.bad(f"entry {number}", "an object", type(entry).__name__)
        key, start, stop = entry.get("key"), entry.get("start"), entry.get("stop")
        if type(key) not in (int, str) or type(start) is not int or type(stop) is not int:
            raise self.bad(f"entry {number}", "key, start and stop", sorted(map(str, entry)))
        if isinstance(key, int) and abs(key) > MAX_SEQUENCE:
            raise self.bad(f"entry {number}", f"a sequence up to {MAX_SEQUENCE}", key)
        origin = entry.get("origin")
        if origin is not None and (type(origin) is not int or abs(origin) > MAX_POSITION):
            raise self.bad(f"origin of {key}", "a position", origin)
        if not 0 <= start <= stop <= MAX_POSITION + 1:
            raise self.bad(f"run of {key}", "0 <= start <= stop", f"{start} to {stop}")
        n = stop - start
        positions = to_numpy(self.take(f"{number}.positions", (n,), mx.int32))
        wrong = np.flatnonzero(np.diff(positions) != 1)
        if wrong.size or (n and positions[0] != start):
            at = int(wrong[0]) + 1 if wrong.size else 0
            expected = int(positions[at - 1]) + 1 if at else start
            raise self.bad(
                f"hole in the positions of {key}, tensor {number}.positions",
                expected,
                int(positions[at]),
            )
        return entry

    def _history(self, entries: list[dict[str, Any]]) -> History:
        """Runs in fresh cells, by the same rules as ever."""
        now = self.engine.pair.public_bank.history.value
        history = History.empty(now.group_size, now.capacity, now.window, now.space.max_cells)
        spare = 1 + max((e["key"] for e in entries if isinstance(e["key"], int)), default=0)
        try:
            for entry in entries:
                if entry["start"] == entry["stop"]:
                    continue
                slot = isinstance(entry["key"], str)
                seq = spare if slot else entry["key"]
                positions = range(entry["start"], entry["stop"])
                if now.window is not None and len(positions) > now.window:
                    what = f"run of {entry['key']}"
                    raise self.bad(what, f"at most {now.window} (window)", len(positions))
                history = apply(history, Append(seq, positions)).history
                if slot:
                    history = apply(history, Save(seq, entry["key"])).history
                    history = apply(history, Reset(seq)).history
        except Rejected as error:
            raise self.bad("runs of the session", "legal runs", error) from error
        return history

    def _fill_key(self, bank: Bank, number: int, entry: dict[str, Any]) -> None:
        key: Key = entry["key"]
        origin = entry.get("origin")
        bank.history.set_origin(key, origin)
        bank.changes.touch(key, 0)
        bank.changes.regrouped.add(key)
        if not bank.with_model:
            return
        bank.tokens.write(key, self._lineage(number, entry))
        look = bank.look(key)
        if look.evicted < 0 or bank.tokens.of(key).n_live != look.n_live:
            raise self.bad(f"tokens of {key}", f"{look.n_live} live", bank.tokens.of(key).n_live)
        ordinals = mx.array(np.arange(look.evicted, look.consumed, dtype=np.int32))
        bank.history.write(ORDINAL, look.extents, ordinals)
        for owner in bank.positional():
            self._rows(bank, owner, number, key)
        for fixed in bank.fixed():
            values = self._values(f"{number}.", fixed) if look.consumed else {}
            fixed.replace(key, values)
        bank.mark(key)
        self._checkpoints(bank, number, entry)

    def _lineage(self, number: int, entry: dict[str, Any]) -> Lineage:
        consumed, events = entry.get("consumed"), entry.get("events")
        if type(consumed) is not int or consumed < 0 or not isinstance(events, list):
            raise self.bad(f"lineage of {entry['key']}", "consumed and events", consumed)
        assert self.engine.model is not None
        ids = to_numpy(self.take(f"{number}.tokens", (consumed,), mx.int64))
        vocab = self.engine.model.config.vocab_size
        if consumed and (ids.min() < 0 or ids.max() >= vocab):
            raise self.bad(f"tensor {number}.tokens", f"ids below {vocab}", int(ids.max()))
        found, evicted = self._events(entry, events, consumed)
        return Lineage(TokenLog().extended(ids), found, evicted)

    def _events(
        self, entry: dict[str, Any], events: list[Any], consumed: int
    ) -> tuple[tuple[Event, ...], int]:
        """Events that could have happened to this run, and how many positions they dropped."""
        found, last, evicted, base = [], 0, 0, 0
        for event in events:
            if not _is_event(event) or not last <= event[0] <= consumed:
                raise self.bad(f"lineage of {entry['key']}", "count, kind, value", event)
            last, kind, value = event
            live = last - evicted
            if kind == "evict":
                evicted += value
                legal = 0 < value <= live
            else:
                base = value - last if kind == "start" else base + value
                legal = (live > 0) == (kind == "shift") and base + evicted >= 0
            if not legal or base + last > MAX_POSITION + 1:
                raise self.bad(f"lineage of {entry['key']}", "events of its run", event)
            found.append(Event(*event))
        run = (base + evicted, base + consumed)
        if consumed > evicted and run != (entry["start"], entry["stop"]):
            raise self.bad(f"run of {entry['key']}", f"{run[0]} to {run[1]}", entry["start"])
        return tuple(found), evicted

    def _rows(self, bank: Bank, owner: PositionalOwner, number: int, key: Key) -> None:
        look = bank.look(key)
        lo, hi, _ = owner.units(look)
        for p in owner.places:
            if p.place == ORDINAL:
                continue
            name = f"{number}.{owner.name}.{p.layer}.{p.part}"
            rows = self.take(name, (hi - lo, *p.shape), p.dtype)
            if isinstance(owner, GroupOwner):
                owner.put(p.place, look, 0, rows)
            else:
                owner.write(p.place, look.extents, rows)

    def _values(self, prefix: str, owner: FixedOwner) -> dict[int, mx.array]:
        return {
            layer: self.take(f"{prefix}{owner.name}.{layer}.", p.shape, p.dtype)
            for layer, p in owner.places.items()
        }

    def _checkpoints(self, bank: Bank, number: int, entry: dict[str, Any]) -> None:
        counts = entry.get("checkpoints", [])
        log = bank.tokens.of(entry["key"]).log
        if not isinstance(counts, list) or any(
            type(c) is not int or not 0 < c <= log.n for c in counts
        ):
            raise self.bad(f"checkpoints of {entry['key']}", f"counts to {log.n}", counts)
        marks = []
        for count in sorted(set(counts)):
            prefix = f"{number}.checkpoint.{count}."
            values = tuple((o.name, self._values(prefix, o)) for o in bank.fixed())
            n_bytes = sum(v.nbytes for _, layers in values for v in layers.values())
            marks.append(Checkpoint(count, log.cut(count).hash, values, n_bytes))
        if marks:
            bank.checkpoints[entry["key"]] = tuple(marks)
