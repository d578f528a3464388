"""Chains, copies, tiers, windows and losses, from events built here."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.formats import Options, Report, read_source
from engine.formats.source import Source

SIZE = 4


def stored(hashes: list[Any], parent: Any = None, **more: Any) -> dict[str, Any]:
    base = {"type": "BlockStored", "block_hashes": hashes, "parent_block_hash": parent}
    return {**base, "token_ids": [], "block_size": SIZE, **more}


def removed(hashes: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": hashes, **more}


CLEARED = {"type": "AllBlocksCleared"}


def line(number: int, batch: Any, port: Any = 5557, source: str = "live") -> str:
    raw = batch if isinstance(batch, bytes) else msgspec.msgpack.encode(batch)
    text = base64.b64encode(raw).decode()
    fields = {"source": source, "port": port, "topic": "", "seq": number}
    return json.dumps({**fields, "payload_len": len(raw), "payload_b64": text})


def read(lines: list[str], **options: Any) -> Report:
    data = "\n".join(lines).encode() + b"\n"
    return read_source(Source(Path("made"), data, len(data)), Options(**options)).report


def stream(*messages: list[Any], **options: Any) -> Report:
    """One publisher whose messages hold these events, the clock going by one."""
    lines = [line(number, [float(number), own]) for number, own in enumerate(messages)]
    return read(lines, **options)


def codes(report: Report) -> list[str]:
    return [code.value for code in report.codes]


def runs(report: Report) -> dict[Any, Any]:
    return {own.id: own.run for own in report.sequences}


@pytest.mark.parametrize("encoding", ["maps", "arrays", "all maps", "old arrays"])
def test_encodings_mean_the_same(encoding: str) -> None:
    events: list[Any] = [stored([1, 2, 3]), removed([2])]
    if "arrays" in encoding:
        tail = [None, "GPU", None, None, 0] if encoding == "arrays" else []
        events = [
            ["BlockStored", [1, 2, 3], None, [], SIZE, *tail],
            ["BlockRemoved", [2], *(["GPU"] if tail else [])],
        ]
    batch: Any = [1.0, events]
    if encoding == "all maps":
        batch = {"ts": 1.0, "events": events, "data_parallel_rank": 0}
    report = read([line(0, batch)])
    assert codes(report) == ["hole"]
    assert report.sequences[0].holes == ((4, 8),)


def test_unknown_fields_and_events_are_ignored() -> None:
    report = stream([stored([1], future={"a": 1}), {"type": "BlockMoved", "x": 1}])
    assert codes(report) == []
    assert any("not known" in remark for remark in report.fact("remarks"))


def test_digests_name_the_same_block_as_their_last_eight_bytes() -> None:
    digest = bytes(24) + (77).to_bytes(8, "big")
    report = stream([stored([digest])], [stored([78], 77)])
    assert runs(report) == {"78": (0, 8)}


def test_copies_are_counted() -> None:
    events = [stored([1, 2]), stored([1, 2]), removed([1])]
    assert codes(stream(events)) == []
    assert codes(stream(events, last_copy_only=True)) == ["hole"]


def test_a_lower_tier_keeps_a_block() -> None:
    events = [stored([1, 2]), stored([1], medium="CPU_PINNED"), removed([1])]
    assert codes(stream(events)) == []
    assert codes(stream([*events, removed([1], medium="CPU_PINNED")])) == ["hole"]


def test_groups_are_apart() -> None:
    report = stream([stored([1, 2], group_idx=0), stored([1, 2], group_idx=1)], [removed([1])])
    assert codes(report) == ["hole"]
    assert [dict(own.extra)["group"] for own in report.sequences] == [0, 1]
    assert report.sequences[1].holes == ()


def window(count: int, gone: list[int]) -> Report:
    more = {"kv_cache_spec_kind": "sliding_window", "kv_cache_spec_sliding_window": 8}
    return stream([stored(list(range(1, count + 1)), **more)], [removed([own]) for own in gone])


def test_a_sliding_window_needs_its_last_blocks_only() -> None:
    report = window(6, [1, 2, 4])
    assert codes(report) == []
    assert report.sequences[0].parts[0].evicted == ((0, 8), (12, 16))
    assert report.sequences[0].usable == (0, 24)
    assert codes(window(6, [5])) == ["hole"]


def test_a_kind_that_is_not_known_is_unproved() -> None:
    report = stream([stored([1, 2, 3], kv_cache_spec_kind="mamba")], [removed([1])])
    assert codes(report) == []
    assert report.unproved == ("3",)


def test_children_stored_after_a_clear_are_a_hole() -> None:
    assert codes(stream([stored([1, 2])], [CLEARED], [stored([3], 2)])) == ["hole"]
    assert codes(stream([stored([1, 2])], [CLEARED])) == []


def test_a_parent_that_nobody_reported() -> None:
    report = stream([stored([2, 3], 1)])
    assert codes(report) == ["unknown_parent"]
    listed = report.to_json()["publishers"][0]["chains"][0]
    assert listed == {"leaf": "3", "group": 0, "run": None, "length": 8, "unknown_parent": "1"}


def test_a_late_start_counts_as_lost() -> None:
    report = read([line(5, [1.0, [stored([2], 1)]])])
    assert codes(report) == ["lost_events"]
    assert report.to_json()["publishers"][0]["missing_seq"] == [[0, 4]]


def test_a_loss_before_does_not_excuse_a_hole_behind_it() -> None:
    batches = {0: [stored([9])], 2: [stored([1, 2, 3])], 3: [removed([2])]}
    report = read([line(number, [float(number), own]) for number, own in batches.items()])
    assert codes(report) == ["hole", "lost_events"]


def test_a_loss_between_makes_a_gap_unknown() -> None:
    batches = {0: [stored([1, 2, 3])], 1: [removed([2])], 3: [stored([9])]}
    report = read([line(number, [float(number), own]) for number, own in batches.items()])
    assert codes(report) == ["lost_events"]
    chain = next(own for own in report.to_json()["publishers"][0]["chains"] if own["leaf"] == "3")
    assert chain["unknown"] == [[4, 7]]
    assert report.sequences[0].usable == (0, 4)


def test_order_duplicates_and_replays() -> None:
    lines = [
        line(2, [3.0, [stored([3], 2)]]),
        line(0, [1.0, [stored([1])]], source="replay"),
        line(1, [2.0, [stored([2], 1)]], source="replay"),
        line(2, [3.0, [stored([3], 2)]], source="replay"),
    ]
    report = read(lines)
    assert codes(report) == []
    assert runs(report) == {"3": (0, 12)}
    assert report.to_json()["publishers"][0]["duplicates"] == 1


def test_a_restart_forgets() -> None:
    lines = [line(number, [float(number), [stored([number + 1])]]) for number in range(3)]
    report = read([*lines, line(0, [50.0, [stored([77])]])])
    assert runs(report) == {"77": (0, 4)}
    assert report.to_json()["publishers"][0]["restarts"] == 1
    assert codes(report) == []


def test_a_clock_that_runs_backwards_is_no_restart() -> None:
    report = read([line(0, [9.0, [stored([1])]]), line(1, [5.0, [stored([2], 1)]])])
    assert codes(report) == []
    assert runs(report) == {"2": (0, 8)}


def test_a_payload_that_does_not_decode_counts_as_lost() -> None:
    report = read([line(0, b"\xc1"), line(1, [2.0, [stored([2], 1)]])])
    assert codes(report) == ["undecodable"]
    listed = report.to_json()["publishers"][0]
    assert (listed["undecodable"], listed["missing_seq"]) == ([0], [])


def test_two_parents_and_sizes_are_contradictions() -> None:
    assert codes(stream([stored([1]), stored([2]), stored([3], 1), stored([3], 2)])) == [
        "inconsistent"
    ]
    assert codes(stream([stored([1]), stored([2], 1, block_size=8)])) == ["inconsistent"]


def test_a_loop_of_parents_is_a_contradiction_and_ends() -> None:
    report = stream([stored([1], 2), stored([2], 1), stored([3], 2)])
    assert "inconsistent" in codes(report)


def test_ranks_behind_one_port_are_told_apart() -> None:
    lines = [
        line(0, [1.0, [stored([1])], 0]),
        line(0, [1.5, [stored([1])], 1]),
        line(1, [2.0, [stored([2], 1)], 1]),
    ]
    report = read(lines)
    assert codes(report) == []
    assert [len(own["chains"]) for own in report.to_json()["publishers"]] == [1, 1]


def test_a_file_that_ends_in_a_line() -> None:
    whole = line(0, [1.0, [stored([1])]])
    data = (whole + "\n" + whole[:60]).encode()
    report = read_source(Source(Path("made"), data, len(data)), Options()).report
    assert codes(report) == ["truncated"]
    assert report.exit_status == 2
    assert runs(report) == {"1": (0, 4)}


def test_a_line_that_is_no_message() -> None:
    report = read([line(0, [1.0, [stored([1])]]), '{"hello": 1}', line(1, [2.0, []])])
    assert codes(report) == ["undecodable"]
    assert report.findings[0].offset is not None


@pytest.mark.parametrize("seed", range(30))
def test_random_streams_agree_with_a_plain_inventory(seed: int) -> None:
    """Stores and removals at random: chains, holes and runs from sets and recursion."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    parents: dict[int, int | None] = {}
    alive: set[int] = set()
    messages: list[list[Any]] = []
    for name in range(1, rng.randrange(5, 60)):
        parent = rng.choice([None, *parents]) if parents else None
        parents[name] = parent
        alive.add(name)
        messages.append([stored([name], parent)])
        if rng.random() < 0.35:
            gone = rng.choice(sorted(alive))
            alive.discard(gone)
            messages.append([removed([gone])])
    report = stream(*messages)

    def path(name: int) -> list[int]:
        above = parents[name]
        return [*(path(above) if above is not None else []), name]

    inner = {own for name in alive for own in path(name)[:-1]}
    expected = {}
    for leaf in alive - inner:
        blocks = path(leaf)
        gone_at = [i for i, own in enumerate(blocks) if own not in alive]
        positions = [p for i in gone_at for p in range(i * SIZE, (i + 1) * SIZE)]
        expected[str(leaf)] = (len(blocks) * SIZE, positions)
    found = {
        str(own.id): (
            own.run[1] if own.run else None,
            [position for start, stop in own.holes for position in range(start, stop)],
        )
        for own in report.sequences
    }
    assert found == expected
    assert codes(report) == (["hole"] if any(gone for _, gone in expected.values()) else [])
