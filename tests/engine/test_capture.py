"""Captures: every record comes back as it was, whatever happened to the process or the file."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.capture import Capture, CaptureWriter, is_capture
from engine.errors import Unreadable
from tests.helpers.records import records, sequence, start_snapshot

ROOT = Path(__file__).parents[2]


def written(path: Path, count: int, **options: object) -> Path:
    with CaptureWriter(path, start_snapshot(), **options) as writer:  # type: ignore[arg-type]
        for record in records(count):
            writer.record(record)
    return path


def read_all(path: Path) -> int:
    """Read every row both ways, as a window would."""
    with Capture(path) as capture:
        capture.counts()
        return len(list(capture.records())) + capture.record(69).number


@pytest.fixture(scope="module")
def capture_300(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("capture") / "c.bankflip", 300)


def test_every_record_comes_back_as_it_was(capture_300: Path) -> None:
    with Capture(capture_300) as capture:
        assert len(capture) == 300
        assert list(capture.records()) == list(records(300))


def test_any_row_can_be_read_by_itself(capture_300: Path) -> None:
    expected = list(records(300))
    with Capture(capture_300) as capture:
        for index in (299, 0, 63, 64, 65, 127, 128, 1, -1, -300):
            assert capture.record(index) == expected[index]
        assert list(capture.records(60, 70)) == expected[60:70]
        assert list(capture.records(70, 60)) == []
        with pytest.raises(IndexError):
            capture.record(300)


def test_counts_and_places_by_outcome(capture_300: Path) -> None:
    outcomes = [record.outcome for record in records(300)]
    with Capture(capture_300) as capture:
        assert capture.counts() == {word: outcomes.count(word) for word in set(outcomes)}
        failed = [i for i, word in enumerate(outcomes) if word == "failed"]
        assert capture.indexes("failed") == failed
        assert capture.indexes("failed", 2) == failed[:2]


def test_a_refusal_that_changed_something_is_found(tmp_path: Path) -> None:
    rows = list(records(200))
    refused = [i for i, row in enumerate(rows) if row.outcome != "ok"]
    guilty = [refused[0], refused[7], refused[-1]]
    with CaptureWriter(tmp_path / "c", start_snapshot()) as writer:
        for i, row in enumerate(rows):
            lie = (("history", "00" * 16), *row.digests_after[1:])
            writer.record(replace(row, digests_after=lie) if i in guilty else row)
    with Capture(tmp_path / "c") as capture:
        assert capture.changed_by_refusals() == guilty
        assert all(
            r.digests_before == rows[i].digests_before for i, r in enumerate(capture.records())
        )


def test_no_refusal_changed_anything(capture_300: Path) -> None:
    with Capture(capture_300) as capture:
        assert capture.changed_by_refusals() == []


def test_journal_lines_agree_with_the_records(capture_300: Path) -> None:
    with Capture(capture_300) as capture:
        lines = capture.lines(10, 20)
    assert [(x.number, x.outcome, x.flips, x.duration_ns) for x in lines] == [
        (x.number, x.outcome, x.flips, x.duration_ns) for x in list(records(300))[10:20]
    ]


def test_snapshots_for_time_travel(capture_300: Path) -> None:
    expected = list(records(300))
    with Capture(capture_300) as capture:
        assert capture.snapshot_at(-1) == start_snapshot()
        snapshot = capture.snapshot_at(150)
    assert snapshot.sequences == expected[150].sequences
    assert snapshot.flips == expected[150].flips
    assert {o.name: o.public_digest for o in snapshot.owners} == dict(expected[150].digests_after)
    assert snapshot.model == "qwen4exp-tiny"


def test_sequences_that_go_and_come_out_of_order(tmp_path: Path) -> None:
    (base,) = records(1)
    views = [(0, 1, 2), (0, 2), (2, 0), (), (5,), (5, 1)]
    rows = [
        replace(base, number=i, sequences=tuple(sequence(s, 0, i + 4) for s in order))
        for i, order in enumerate(views)
    ]
    with CaptureWriter(tmp_path / "c", start_snapshot()) as writer:
        for row in rows:
            writer.record(row)
    with Capture(tmp_path / "c") as capture:
        assert list(capture.records()) == rows
        assert [capture.record(i) for i in range(len(rows))] == rows


def test_the_file_is_plain_sqlite(capture_300: Path) -> None:
    assert is_capture(capture_300.read_bytes()[:100])
    assert sorted(p.name for p in capture_300.parent.iterdir()) == ["c.bankflip"]
    database = sqlite3.connect(capture_300)
    last = database.execute(
        "SELECT first, last, complete_groups, tail FROM runs WHERE seq = 1 ORDER BY row DESC"
    ).fetchone()
    view = next(v for v in list(records(300))[-1].sequences if v.seq == 1)
    assert last == (view.start, view.stop - 1, view.n_groups, view.n_tail)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


def test_without_text_no_token_id_reaches_the_file(tmp_path: Path) -> None:
    secret = 918273645
    (base,) = records(1)
    append = {"op": "append", "seq": 0, "positions": [0], "tokens": [secret]}
    nested = {"op": "fail", "stage": "write", "kind": "oom", "during": append}
    inner = {"op": "transaction", "ops": [append]}
    rows = [replace(base, op_json=json.dumps(op)) for op in (append, nested, inner)]
    rows.append(replace(base, reason="token", given=secret, sentence=f"append: token {secret}"))
    for with_text in (True, False):
        path = tmp_path / f"{with_text}.bankflip"
        with CaptureWriter(path, start_snapshot(), with_text=with_text) as writer:
            for row in rows:
                writer.record(row)
        found = str(secret).encode() in path.read_bytes()
        assert found == with_text
        with Capture(path) as capture:
            assert capture.with_text == with_text
            assert json.loads(capture.record(0).op_json)["positions"] == [0]


def test_a_session_in_progress_can_be_read(tmp_path: Path) -> None:
    expected = list(records(40))
    with CaptureWriter(tmp_path / "c", start_snapshot(), {"model": "m"}) as writer:
        for record in expected[:30]:
            writer.record(record)
        writer.flush()
        with Capture(tmp_path / "c") as capture:
            assert capture.about["model"] == "m"
            assert list(capture.records()) == expected[:30]
            for record in expected[30:]:
                writer.record(record)
            writer.flush()
            assert capture.refresh() == 40
            assert capture.record(39) == expected[39]


def test_a_full_queue_waits_and_drops_nothing(tmp_path: Path) -> None:
    with CaptureWriter(tmp_path / "c", start_snapshot(), queue_limit=3) as writer:
        threads = [
            threading.Thread(target=lambda: [writer.record(r) for r in records(200)])
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with Capture(tmp_path / "c") as capture:
        numbers = [line.number for line in capture.lines()]
    assert sorted(numbers) == sorted([*range(200)] * 3)


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "c", start_snapshot())
    other = sqlite3.connect(tmp_path / "c")
    other.execute("DROP TABLE records")
    other.commit()
    other.close()
    writer.record(next(records(1)))
    with pytest.raises(OSError, match="can't be written"):
        writer.flush()
    with pytest.raises(OSError, match="can't be written"):
        writer.record(next(records(1)))
    with pytest.raises(OSError, match="can't be written"):
        writer.close()


def test_only_a_capture_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(Unreadable, match="will not be replaced"):
        CaptureWriter(path, start_snapshot())
    assert path.read_text() == "mine"
    with pytest.raises(Unreadable, match="folder"):
        CaptureWriter(tmp_path, start_snapshot())
    with pytest.raises(Unreadable, match="can't be written"):
        CaptureWriter(tmp_path / "no" / "folder", start_snapshot())
    written(tmp_path / "c", 5)
    written(tmp_path / "c", 3)
    with Capture(tmp_path / "c") as capture:
        assert len(capture) == 3


def test_a_capture_in_use_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with CaptureWriter(path, start_snapshot()) as writer:
        for record in records(5):
            writer.record(record)
        writer.flush()
        child = [sys.executable, "-c", CHILD, str(path)]
        second = subprocess.run(child, capture_output=True, text=True, cwd=ROOT, timeout=60)
        assert second.returncode == 1
        assert "will not be replaced" in second.stderr
        with pytest.raises(Unreadable, match="will not be replaced"):
            CaptureWriter(path, start_snapshot())
        writer.record(next(records(1)))
    with Capture(path) as capture:
        assert len(capture) == 6


def test_a_capture_whose_writer_was_killed_is_replaced(tmp_path: Path) -> None:
    kill_at_a_random_moment(tmp_path / "c", 0.2)
    assert (tmp_path / "c-wal").exists()
    written(tmp_path / "c", 3)
    with Capture(tmp_path / "c") as capture:
        assert len(capture) == 3


CHILD = """
import sys
from engine.capture import CaptureWriter
from tests.helpers.records import records, start_snapshot
writer = CaptureWriter(sys.argv[1], start_snapshot())
print("open", flush=True)
for record in records(1_000_000):
    writer.record(record)
    if record.number % 50 == 49:
        writer.flush()
        print(record.number + 1, flush=True)
"""


def kill_at_a_random_moment(path: Path, delay_s: float) -> int:
    """Run a writer, kill it, return how many records it had been promised."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    time.sleep(delay_s)
    child.send_signal(signal.SIGKILL)
    promised = [int(line) for line in child.stdout.read().splitlines()]
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    return promised[-1] if promised else 0


def test_killed_at_random_moments_keeps_a_whole_prefix(tmp_path: Path, long_profile: bool) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    total = 0
    for i in range(40 if long_profile else 4):
        path = tmp_path / f"{i}.bankflip"
        promised = kill_at_a_random_moment(path, chance.random() * 0.6)
        with Capture(path) as capture:
            assert len(capture) >= promised
            total += len(capture)
            for found, expected in zip(capture.records(), records(len(capture)), strict=True):
                assert found == expected
    assert total > 0


def test_a_killed_capture_opens_where_nothing_may_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    promised = kill_at_a_random_moment(folder / "c", 0.3)
    with Capture(folder / "c") as capture:
        whole = len(capture)
    for side in folder.iterdir():
        side.chmod(0o444)
    folder.chmod(0o555)
    try:
        with Capture(folder / "c") as capture:
            assert len(capture) == whole >= promised
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(84), bytes(5000)])
def test_other_files_are_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.bankflip"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match="not a capture"):
        Capture(path)


def test_other_databases_folders_and_versions_are_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "other")
    database.execute("CREATE TABLE records (x)")
    database.commit()
    database.close()
    with pytest.raises(Unreadable, match="another program"):
        Capture(tmp_path / "other")
    with pytest.raises(Unreadable, match="folder"):
        Capture(tmp_path)
    database = sqlite3.connect(written(tmp_path / "new", 1))
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(Unreadable, match="expected 1, found 99"):
        Capture(tmp_path / "new")


@pytest.mark.parametrize(
    "harm",
    [
        "DROP TABLE layouts",
        "DELETE FROM about WHERE key = 'start'",
        "UPDATE about SET value = '{}' WHERE key = 'start'",
        "ALTER TABLE records ADD COLUMN extra",
        "DELETE FROM records WHERE row = 1",
        "DELETE FROM records WHERE row = 100",
        "UPDATE records SET sequences = 'x' WHERE row = 70",
        'UPDATE records SET sequences = \'{"set":[{}],"gone":[]}\' WHERE row = 70',
        "UPDATE records SET sequences = x'ff00' WHERE row = 70",
        "UPDATE records SET digests_after = '[1]' WHERE row = 70",
        "UPDATE records SET stage_layout = 999 WHERE row = 70",
        "UPDATE records SET stage_ns = '[1]' WHERE row = 70",
        "UPDATE records SET stage_marks = '[[1]]' WHERE row = 70",
        "UPDATE records SET keyframe = 999 WHERE row = 70",
        "UPDATE records SET cells_written = '3' WHERE row = 70",
        "UPDATE records SET duration_ns = 'soon' WHERE row = 70",
        "UPDATE records SET op = x'00' WHERE row = 70",
        "DROP TABLE records; CREATE VIEW records AS SELECT * FROM about",
    ],
)
def test_damage_is_said_and_never_a_traceback(tmp_path: Path, harm: str) -> None:
    path = written(tmp_path / "c", 150)
    database = sqlite3.connect(path)
    database.executescript(harm)
    database.commit()
    database.close()
    with pytest.raises(Unreadable, match=str(path)):
        read_all(path)


def test_a_damaged_text_is_not_quoted_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "c", 3)
    content = path.read_bytes()
    at = content.index(b'"flips"')
    path.write_bytes(content[:at] + b"\xff\xfe\n" + content[at + 3 :])
    with pytest.raises(Unreadable, match="damaged capture") as caught:
        Capture(path)
    assert len(str(caught.value)) < len(str(path)) + 200
    assert "\n" not in str(caught.value)


def test_flipped_and_cut_bytes_never_crash(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    whole = written(tmp_path / "c", 120).read_bytes()
    path = tmp_path / "damaged"
    outcomes = set()
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 20, 400))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged[: chance.choice((len(damaged), chance.randrange(len(damaged))))])
        try:
            with Capture(path) as capture:
                list(capture.records())
                capture.counts()
            outcomes.add("read")
        except Unreadable:
            outcomes.add("refused")
    assert "refused" in outcomes
