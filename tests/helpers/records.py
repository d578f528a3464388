"""Hand-made records of a session, any number of them, the same for the same arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from engine.snapshot import OwnerView, PartView, Record, SequenceView, Snapshot, StageView

OWNERS = (
    ("history", "position"),
    ("tokens", "position"),
    ("qsa.kv", "position"),
    ("qsa.index", "position"),
    ("qsa.groups", "group"),
    ("gdn.recurrent", "sequence"),
    ("logits", "sequence"),
)
STAGES = ("reserve", "load", "embed", "layer.0.gdn", "layer.3.qsa.select", "compress", "index")


def digest(*words: object) -> str:
    """32 hex digits that follow from the words."""
    return hashlib.md5(repr(words).encode()).hexdigest()


def sequence(seq: int, start: int, stop: int) -> SequenceView:
    """A sequence whose run is start to stop, in one piece of cells."""
    n = stop - start
    return SequenceView(
        seq=seq,
        start=start,
        stop=stop,
        group_size=4,
        n_groups=n // 4,
        n_tail=n % 4,
        extents=((seq * 1000, n),) if n else (),
        consumed=n,
        evicted=0,
        padding=start,
        parts=(PartView("qsa.kv", 3, start if n else None, stop - 1 if n else None, n),),
    )


def start_snapshot() -> Snapshot:
    """The state before the first record: nothing live."""
    return Snapshot(
        number=0,
        txn=0,
        flips=0,
        public_bank=0,
        group_size=4,
        capacity=4096,
        window=None,
        n_cells=0,
        sequences=(),
        slots=(),
        owners=tuple(
            OwnerView(name, unit, 64, digest(name), digest(name), "same", 0)
            for name, unit in OWNERS
        ),
        backend="cpu",
        model="qwen4exp-tiny",
    )


def stages(seq: int, failed: int | None) -> tuple[StageView, ...]:
    """Stages in order; those from `failed` on did not succeed."""
    result = []
    for i, name in enumerate(STAGES):
        state = "done" if failed is None or i < failed else "not reached"
        kind = ""
        if i == failed:
            state, kind = "failed", "nonfinite"
        n = 1000 + i if state != "not reached" else 0
        result.append(
            StageView(name, "graph", state, n, 0, seq, kind, reads=("tokens",), writes=("qsa.kv",))
        )
    return tuple(result)


def records(count: int, n_sequences: int = 2, fail_every: int = 7) -> Iterator[Record]:
    """Appends of three tokens in turn; every `fail_every`-th fails, every 11th is refused."""
    stops = dict.fromkeys(range(n_sequences), 0)
    before = tuple((name, digest(name)) for name, _ in OWNERS)
    flips = 0
    for number in range(count):
        seq = number % n_sequences
        first = stops[seq]
        failed = number % fail_every == fail_every - 1
        refused = number % 11 == 10 and not failed
        after = before
        if not failed and not refused:
            stops[seq] += 3
            flips += 1
            after = tuple((name, digest(name, number)) for name, _ in OWNERS)
        tokens = ", ".join(str(number % 97 + i) for i in range(3))
        yield Record(
            number=number,
            txn=None if refused else number,
            op="append",
            seq=seq,
            op_json=f'{{"op":"append","seq":{seq},"positions":[{first}],"tokens":[{tokens}]}}',
            result="rejected: nonfinite" if failed else "rejected: gap" if refused else "ok",
            outcome="failed" if failed else "rejected" if refused else "ok",
            sentence=f"append on sequence {seq}",
            n_tokens=3,
            duration_ns=1000 + number,
            public_bank=flips % 2,
            flips=flips,
            stage="layer.3.qsa.select" if failed else "",
            kind="nonfinite" if failed else "",
            reason="gap" if refused else "",
            expected=first if refused else None,
            given=2**70 if refused else None,
            stages=() if refused else stages(seq, 4 if failed else None),
            digests_before=before,
            digests_after=after,
            sequences=tuple(sequence(s, s, s + stop) for s, stop in stops.items() if stop),
            cells_written=() if failed or refused else ((seq * 1000 + first, 3),),
            positions_written=None if failed or refused else (first, first + 3),
            wall_ns=1_700_000_000_000_000_000 + number,
        )
        before = after
