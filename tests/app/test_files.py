"""Opening state of other engines, in a child process that can be cancelled; reports."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app import resources
from app.models.sequences import holes
from app.readers import CaptureReader, ChildCommand, ForeignReader
from app.settings import Settings
from app.views.main_window import MainWindow
from engine import capture_records
from engine.capture_writer import CaptureWriter
from tests.app import values


@pytest.fixture
def window(qtbot, settings: Settings, caught):
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    window.build_panels()
    yield window
    window.close()
    assert not caught, "\n".join(caught)


@pytest.mark.parametrize("sample", resources.samples(), ids=lambda s: s[0].name)
def test_every_sample_opens_and_shows_its_runs(window, wait, sample) -> None:
    path, title, line = sample
    assert title
    assert line.endswith(".")
    window.open_path(str(path))
    wait(lambda: not window.is_opening, what=path.name)
    assert not window.error_bar.isVisible(), window.error_bar.whole()
    report = window.client.foreign
    assert Path(report["file"]).name == path.name
    tracks = [t for t in window.run_panel._drawn if t.seq >= 0]
    assert len(tracks) == len(report["sequences"])
    for track, sequence in zip(tracks, report["sequences"], strict=True):
        missing = [[a, b - 1] for a, b in holes(track)]
        assert missing == sequence["holes"]
        assert track.n_live == sequence["live"]
    assert "can be looked at" in window.actions_.reason("run.chunk")


def test_parts_that_are_behind_have_a_lane_of_their_own(window, wait) -> None:
    window.open_path(str(resources.SAMPLES / "mlx-lm-torn-prefill.safetensors"))
    wait(lambda: not window.is_opening)
    whole, part = window.run_panel._drawn
    assert (whole.frontier, part.frontier) == (31, 15)
    assert part.label == "sequence 0 layer.2, layer.3"
    assert window.run_panel.sequence.isVisible()


def test_the_hole_of_a_sample_is_gone_to(window, wait) -> None:
    path = resources.SAMPLES / "llama-cpp-hole.seq"
    window.open_path(str(path))
    wait(lambda: not window.is_opening)
    assert window.run_panel.go_to_hole(1)
    first, last = window.client.foreign["sequences"][0]["holes"][0]
    assert (window.hub.selection.start, window.hub.selection.stop) == (first, last + 1)
    assert "hole" in window.run_panel.words_at(first)


def test_several_files_are_laid_side_by_side(window, wait) -> None:
    names = ["llama-cpp-clean.seq", "llama-cpp-hole.seq"]
    window.open_paths([str(resources.SAMPLES / name) for name in names])
    wait(lambda: not window.is_opening)
    labels = [track.label for track in window.run_panel._drawn]
    assert [label.split(":")[0] for label in labels] == names
    assert len({track.seq for track in window.run_panel._drawn}) == 2


def test_an_unreadable_file_leaves_nothing_half_open(window, wait, tmp_path: Path) -> None:
    path = tmp_path / "noise.bin"
    path.write_bytes(os.urandom(100))
    window.open_path(str(path))
    wait(lambda: not window.is_opening)
    shown = window.client.foreign
    assert window.error_bar.isVisible() or shown["verdict"] == "unreadable"


def test_reading_is_cancelled_at_once(window, wait) -> None:
    window.open_path(str(resources.SAMPLES / "llama-cpp-hole.seq"))
    assert window.foreign_reader.is_running
    window.cancel()
    assert not window.foreign_reader.is_running
    assert not window.is_opening
    assert window.client.foreign is None


def test_a_file_that_vanished_is_unreadable(qtbot) -> None:
    reader = ForeignReader()
    with qtbot.waitSignal(reader.finished, timeout=60_000) as signal:
        reader.start(["/no/such/file"])
    assert signal.args[0][0]["verdict"] == "unreadable"


def test_a_file_that_changes_is_said_and_reloaded(window, wait, tmp_path: Path) -> None:
    path = tmp_path / "x.seq"
    path.write_bytes((resources.SAMPLES / "llama-cpp-hole.seq").read_bytes())
    window.open_path(str(path))
    wait(lambda: not window.is_opening)
    assert not window.file_bar.isVisible()
    path.write_bytes((resources.SAMPLES / "llama-cpp-clean.seq").read_bytes())
    wait(window.file_bar.isVisible, what="the bar")
    assert window.file_bar.text.text() == "x.seq changed on disk"
    window.file_bar.reload_asked.emit()
    wait(lambda: not window.is_opening)
    assert window.client.foreign["verdict"] == "ok"
    assert not window.file_bar.isVisible()


def test_a_child_tells_status_and_both_streams(qtbot) -> None:
    child = ChildCommand()
    with qtbot.waitSignal(child.ended, timeout=60_000) as signal:
        child.start(["check"])
    status, out, err = signal.args
    assert (status, out) == (2, "")
    assert "FILE" in err


def test_a_long_capture_is_read_in_turns(qtbot, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(capture_records, "ROWS_A_STEP", 700)
    path = tmp_path / "long.bankflip"
    with CaptureWriter(path, values.snapshot()) as capture:
        for n in range(3000):
            capture.record(values.record(n, values.sequence(0, 0, n % 50)))
    reader = CaptureReader()
    steps: list[tuple[int, int]] = []
    reader.progressed.connect(lambda done, total: steps.append((done, total)))
    with qtbot.waitSignal(reader.finished, timeout=60_000) as signal:
        reader.start(str(path))
    capture, records = signal.args
    assert [record.number for record in records] == list(range(3000))
    capture.close()
    assert len(steps) == 5
    assert steps == sorted(steps)
    reader.start(str(path))
    reader.cancel()


def test_a_report_of_a_live_session_comes_from_its_journal(window, wait, tmp_path: Path) -> None:
    window.open_tiny()
    client = window.client
    wait(lambda: client.session is not None and client.feed.queued)
    window.run()
    wait(lambda: client.records and not client.feed.running and not client.feed.queued)
    window.append_hole()
    wait(lambda: client.records[-1].outcome == "rejected")
    window.report_to(tmp_path)
    wait(lambda: not window.report_child.is_running, 240, "report")
    assert not window.error_bar.isVisible(), window.error_bar.whole()
    assert (tmp_path / "report.html").stat().st_size > 10_000
    facts = json.loads((tmp_path / "report.json").read_text())
    assert "not-consecutive" in json.dumps(facts)
    assert "Report written" in window.status.currentMessage()
