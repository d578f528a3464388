"""A capture in the window: opened at once, travelled row by row, damage said."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from app.settings import Settings
from app.views.main_window import MainWindow
from engine.capture import CaptureWriter
from engine.capture_records import CaptureRecords
from tests.helpers.records import records, start_snapshot

N = 3_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with CaptureWriter(tmp_path / "long.bankflip", start_snapshot()) as writer:
        for record in records(N):
            writer.record(record)
    return tmp_path / "long.bankflip"


@pytest.fixture
def window(qtbot, settings: Settings) -> MainWindow:
    made = MainWindow(settings)
    qtbot.addWidget(made)
    made.show()
    made.build_panels()
    yield made
    made.close()


def opened(window: MainWindow, path: Path, wait) -> CaptureRecords:
    window.open_path(str(path))
    wait(lambda: not window.is_opening, what="opening")
    found = window.client.records
    assert isinstance(found, CaptureRecords)
    return found


def test_every_row_is_there_and_few_were_read(window: MainWindow, path: Path, wait) -> None:
    kept = opened(window, path, wait)
    assert len(kept) == N
    journal = window.docks.panels["journal"]
    journal.flush()
    assert len(journal.journal()) == N
    assert len(kept._pages) * 64 < N / 2
    assert window.client.offline


def test_time_travel_shows_the_state_of_each_event(window: MainWindow, path: Path, wait) -> None:
    opened(window, path, wait)
    expected = list(records(N))
    for at in (0, 1499, N - 2):
        window.show_index(at)
        assert window.client.shown == expected[at]
        assert window.client.sequences == expected[at].sequences
    window.show_index(N - 1)
    assert window.client.shown is None
    assert window.client.sequences == expected[-1].sequences


def test_the_next_problem_is_found_without_reading_rows(
    window: MainWindow, path: Path, wait
) -> None:
    kept = opened(window, path, wait)
    expected = [r.number for r in records(N) if r.outcome in ("rejected", "failed")]
    window.show_index(0)
    for number in expected[:5]:
        window.step_problem(1)
        assert window.client.shown is not None
        assert window.client.shown.number == number
    assert len(kept._pages) * 64 < N / 2


def test_the_file_is_closed_with_the_session(window: MainWindow, path: Path, wait) -> None:
    kept = opened(window, path, wait)
    window.open_path(str(path))
    wait(lambda: not window.is_opening, what="opening again")
    with pytest.raises(sqlite3.ProgrammingError):
        kept.capture._database.execute("SELECT 1")
    assert len(window.client.records) == N


def test_a_damaged_capture_is_said_and_leaves_nothing_open(
    window: MainWindow, path: Path, wait
) -> None:
    database = sqlite3.connect(path)
    database.execute("UPDATE records SET sequences = 'x' WHERE row = ?", (N,))
    database.commit()
    database.close()
    window.open_path(str(path))
    wait(lambda: not window.is_opening, what="opening")
    assert window.client.session is None
    assert "damaged capture" in window.error_bar.whole()
