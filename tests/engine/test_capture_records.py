"""A capture as a sequence: rows when they are looked at, columns for the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine import capture_records
from engine.capture import Capture, CaptureWriter
from engine.capture_records import CaptureRecords
from engine.errors import Unreadable
from tests.helpers.records import records, start_snapshot

N = 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with CaptureWriter(tmp_path / "c.bankflip", start_snapshot()) as writer:
        for record in records(N):
            writer.record(record)
    return tmp_path / "c.bankflip"


@pytest.fixture
def kept(path: Path) -> Iterator[CaptureRecords]:
    found = CaptureRecords(Capture(path))
    yield found
    found.close()


def test_it_is_the_list_of_records(kept: CaptureRecords) -> None:
    expected = list(records(N))
    assert len(kept) == N
    assert list(kept) == expected
    for at in (0, 1, 63, 64, 200, N - 1, -1, -N):
        assert kept[at] == expected[at]
    for part in (slice(10, 20), slice(-5, None), slice(None, 3), slice(20, 10), slice(0, 90, 30)):
        assert kept[part] == expected[part]
    for at in (N, -N - 1):
        with pytest.raises(IndexError):
            kept[at]


def test_few_pages_are_kept(kept: CaptureRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_records, "PAGES_KEPT", 2)
    expected = list(records(N))
    for at in (0, 70, 140, 210, 1, 299, 71):
        assert kept[at] == expected[at]
    assert len(kept._pages) == 2


@pytest.mark.parametrize("step", [7, 8_192])
def test_columns_agree_with_the_records(
    kept: CaptureRecords, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(capture_records, "ROWS_A_STEP", step)
    numbers, codes, words = kept.columns()
    expected = list(records(N))
    assert numbers["event"].tolist() == [r.number for r in expected]
    assert numbers["txn"].tolist() == [-1 if r.txn is None else r.txn for r in expected]
    assert numbers["stop"].tolist() == [(r.positions_written or (0, -1))[1] for r in expected]
    assert numbers["cell_low"].tolist() == [
        min((cell for cell, _ in r.cells_written), default=0) for r in expected
    ]
    assert numbers["cell_high"].tolist() == [
        max((cell + n for cell, n in r.cells_written), default=0) for r in expected
    ]
    for name in ("op", "outcome", "stage", "kind", "reason"):
        assert [words[name][code] for code in codes[name]] == [getattr(r, name) for r in expected]
    assert [kept.outcome(at) for at in range(N)] == [r.outcome for r in expected]


def test_refusals_in_order_up_to_a_limit(kept: CaptureRecords) -> None:
    refused = [record for record in records(N) if record.outcome != "ok"]
    assert kept.refused() == refused
    assert kept.refused(20) == refused[:20]


def test_an_empty_capture(tmp_path: Path) -> None:
    CaptureWriter(tmp_path / "c", start_snapshot()).close()
    kept = CaptureRecords(Capture(tmp_path / "c"))
    assert len(kept) == 0
    assert list(kept) == kept[:] == kept.refused() == []
    assert kept.columns()[0]["event"].shape == (0,)
    kept.close()


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE records SET flips = 'many' WHERE row = 90",
        "UPDATE records SET flips = '1,2' WHERE row = 90",
        "UPDATE records SET duration_ns = 1e30 WHERE row = 90",
        "UPDATE records SET flips = 10000000000000000000000 WHERE row = 90",
        "DELETE FROM records WHERE row = 90",
        "UPDATE records SET op = x'ff' WHERE row = 90",
    ],
)
def test_damage_is_said(path: Path, harm: str) -> None:
    database = sqlite3.connect(path)
    database.execute(harm)
    database.commit()
    database.close()
    kept = CaptureRecords(Capture(path))
    with pytest.raises(Unreadable):
        read(kept)
    kept.close()


def read(kept: CaptureRecords) -> None:
    """Columns and every row."""
    kept.columns()
    assert list(kept) == [replace(kept[at]) for at in range(len(kept))]
