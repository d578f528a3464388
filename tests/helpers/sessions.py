"""Frozen values of a made-up session, as the engine would send them, for tests of the window."""

from __future__ import annotations

import hashlib
import json

from engine.events import FaultsChanged, FeedChanged, SessionOpened, StagesChanged
from engine.snapshot import (
    OpenView,
    OwnerView,
    PartView,
    Record,
    SequenceView,
    SlotView,
    Snapshot,
    StageView,
)

OWNERS = (
    ("history", "position"),
    ("tokens", "position"),
    ("qsa.kv", "position"),
    ("qsa.index", "position"),
    ("qsa.groups", "group"),
    ("gdn.conv", "sequence"),
    ("gdn.recurrent", "sequence"),
    ("ple.history", "sequence"),
    ("ple.conv", "sequence"),
    ("residual", "sequence"),
    ("routes", "sequence"),
    ("logits", "sequence"),
    ("saved", "slot"),
)
UNITS = dict(OWNERS)
TXN = ("reserve", "load", "write", "compress", "index", "verify", "publish")
LAYER = ("mix_in", "gdn", "moe.route", "moe.experts")
QSA = ("project", "partition", "pool", "select", "attend")


def stage_names() -> list[tuple[str, str]]:
    """Stages of a model with four layers, the last one with attention."""
    graph = ["embed", "layer.0.ple"]
    for layer in range(3):
        graph += [f"layer.{layer}.{name}" for name in LAYER]
    graph += ["layer.3.mix_in", *(f"layer.3.qsa.{name}" for name in QSA)]
    graph += ["layer.3.moe.route", "layer.3.moe.experts", "head"]
    names = [(name, "transaction") for name in TXN[:3]]
    names += [(name, "graph") for name in graph]
    return names + [(name, "transaction") for name in TXN[3:]]


def stages(fail_at: str = "", kind: str = "nonfinite", done: int | None = None):
    """The stages of a transaction: all done, failed at one, or `done` of them done."""
    out, state = [], "done"
    for number, (name, sort) in enumerate(stage_names()):
        if done is not None and number >= done:
            state = "running" if number == done else "pending"
        fails = name == fail_at
        shown = "failed" if fails else state
        out.append(
            StageView(
                name,
                sort,
                shown,
                time_ns=(number % 7 + 1) * 120_000 if shown in ("done", "failed") else 0,
                fail_kind=kind if fails else "",
                detail="NaN in scores at position 812" if fails else "",
                reads=("qsa.kv", "qsa.index") if "qsa" in name else (),
                writes=("qsa.kv",) if "attend" in name else (),
            )
        )
        if fails:
            state = "not reached"
    return tuple(out)


def digest(*parts: object) -> str:
    """32 hex digits that depend on the parts."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def digests(version: int):
    """Digests of all owners after `version` changes."""
    return tuple((name, digest(name, version)) for name, _ in OWNERS)


def parts(start: int, stop: int, consumed: int, lost_groups: int = 0, behind: int = 0):
    """Parts of a sequence; `lost_groups` are missing, the index is `behind`."""
    n_live, groups = stop - start, (stop - start) // 4 - lost_groups
    if n_live == 0:
        return ()
    return (
        PartView("qsa.kv", 3, start, stop - 1, n_live),
        PartView("qsa.index", 3, start, stop - 1 - behind, n_live - behind),
        PartView("qsa.groups", 3, 0 if groups else None, groups - 1 if groups else None, groups),
        PartView("gdn.recurrent", 0, None, None, consumed),
        PartView("gdn.conv", 0, None, None, consumed),
    )


def sequence(seq=0, start=0, stop=32, evicted=0, padding=0, extents=None, **faults):
    """One sequence; `faults` go to `parts`."""
    n_live, consumed = stop - start, stop - start + evicted
    cells = extents if extents is not None else (((seq * 64, n_live),) if n_live else ())
    return SequenceView(
        seq,
        start,
        stop,
        4,
        n_live // 4,
        n_live % 4,
        cells,
        consumed,
        evicted,
        padding,
        parts(start, stop, consumed, **faults),
    )


def owners(version: int = 1, state: str = "same"):
    """All owners; `state` is that of the private bank."""
    out = []
    for number, (name, unit) in enumerate(OWNERS):
        private = digest(name, version) if state in ("same", "sealed") else ""
        layers = ((3, digest(name, version, 3)),) if name.startswith("qsa") else ()
        stale = 4 if state == "stale" and unit == "position" else 0
        n_bytes = 4096 * (number + 1) ** 2
        out.append(
            OwnerView(name, unit, n_bytes, digest(name, version), private, state, stale, layers)
        )
    return tuple(out)


def snapshot(*sequences, version=1, state="same", opened=None, model="qwen4exp-tiny", **more):
    """A snapshot with these sequences."""
    return Snapshot(
        number=version,
        txn=version,
        flips=version,
        public_bank=version % 2,
        group_size=4,
        capacity=4096,
        window=None,
        n_cells=max([64 * (view.seq + 1) for view in sequences], default=0),
        sequences=tuple(sequences),
        slots=more.pop("slots", (SlotView("a", 0, 16, 16, 65536),)),
        owners=owners(version, state),
        backend="cpu",
        model=model,
        open=opened,
        **more,
    )


def open_view(start=32, stop=36, txn=9):
    """A transaction in flight."""
    return OpenView(txn, "append", 0, stop - start, start, stop, ((32, stop - start),), "verify")


def record(number: int, start: int, stop: int, **more):
    """An append of [start, stop) that published, by default of sequence 0 alone."""
    seq = more.get("seq", 0)
    values = {
        "number": number,
        "txn": number,
        "op": "append",
        "seq": seq,
        "op_json": json.dumps(
            {"op": "append", "seq": seq, "positions": list(range(start, min(stop, start + 64)))}
        ),
        "result": "ok",
        "outcome": "ok",
        "sentence": f"append wrote {stop - start} positions to sequence {seq}",
        "n_tokens": stop - start,
        "duration_ns": 1_200_000 + 10_000 * (number % 50),
        "public_bank": number % 2,
        "flips": number,
        "stages": stages(),
        "digests_before": digests(number - 1),
        "digests_after": digests(number),
        "sequences": (sequence(seq, 0, stop),),
        "cells_written": ((start, stop - start),),
        "positions_written": (start, stop),
    }
    return Record(**{**values, **more})


def refused(number: int, start: int = 100, **more):
    """An append with a hole, refused before any stage."""
    values = {
        "txn": None,
        "op_json": json.dumps({"op": "append", "seq": 0, "positions": [start, start + 1, 103]}),
        "result": "rejected: not-consecutive",
        "outcome": "rejected",
        "sentence": "append on sequence 0: not-consecutive, expected 102, given 103",
        "n_tokens": 0,
        "reason": "not-consecutive",
        "expected": 102,
        "given": 103,
        "nearest": 102,
        "stages": (),
        "digests_before": digests(number - 1),
        "digests_after": digests(number - 1),
        "cells_written": (),
        "positions_written": None,
        "flips": number - 1,
    }
    return record(number, 0, 32, **{**values, **more})


def failed(number: int, stage: str = "layer.3.qsa.select", kind: str = "nonfinite", **more):
    """An append that failed at a stage; nothing changed."""
    values = {
        "result": f"rejected: {kind}",
        "outcome": "failed",
        "sentence": f"append on sequence 0: {kind} at stage {stage}",
        "stage": stage,
        "kind": kind,
        "bad_value": "NaN at position 34",
        "stages": stages(stage, kind),
        "digests_before": digests(number - 1),
        "digests_after": digests(number - 1),
        "sequences": (sequence(0, 0, 32),),
        "flips": number - 1,
    }
    return record(number, 32, 36, **{**values, **more})


def journal(n_records: int):
    """A varied journal: appends of four, a failure each tenth, a refusal each fifteenth."""
    out, stop = [], 0
    for number in range(1, n_records + 1):
        if number % 10 == 0:
            more = {"sequences": (sequence(0, 0, stop),)}
            out.append(failed(number, positions_written=(stop, stop + 4), **more))
        elif number % 15 == 0:
            out.append(refused(number, sequences=(sequence(0, 0, stop),)))
        else:
            out.append(record(number, stop, stop + 4))
            stop += 4
    return out


def opened(model: str = "qwen4exp-tiny"):
    """The answer to opening a session."""
    arrays = (
        ("qsa.kv", 3, "k"),
        ("qsa.kv", 3, "v"),
        ("qsa.index", 3, "raw"),
        ("gdn.recurrent", 0, "state"),
        ("logits", -1, "logits"),
    )
    return SessionOpened(model, "cpu", tuple(stage_names()), OWNERS, arrays)


def fill(client, records, *sequences, **more) -> None:
    """Hand a session to a client as the engine would, and deliver it."""
    client.receive(0, opened())
    for item in records:
        client.receive(0, item)
    if records:
        client.receive(0, StagesChanged(records[-1].txn or 0, records[-1].stages or stages()))
    version = records[-1].flips if records else 1
    client.receive(0, snapshot(*sequences, version=more.pop("version", version), **more))
    client.receive(0, FeedChanged(((0, 12),), False, 4))
    client.receive(0, FaultsChanged(()))
    client.deliver_now()
