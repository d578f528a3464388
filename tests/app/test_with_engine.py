"""The window on the real engine: run, refuse, fail, step, cancel, travel, save, open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog

from app import resources
from app.models.sequences import holes
from app.settings import Settings
from app.views.main_window import MainWindow
from engine.capture import Capture
from engine.commands import ArmFault, Do, Feed, Run, RunCheck, SetChunk, StepStage
from engine.events import Trouble
from engine.ops import EvictFront
from engine.snapshot import CheckResult


@pytest.fixture
def window(qtbot, settings: Settings, wait, caught):
    """The tiny model, 64 tokens queued, chunks of five."""
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    window.open_tiny()
    wait(lambda: window.client.session is not None and window.client.feed.queued, what="session")
    yield window
    window.close()
    assert not caught, "\n".join(caught)


def settle(window: MainWindow, wait) -> None:
    window.client.ping()
    wait(lambda: window.client.is_quiet, what="quiet")


def digests(window: MainWindow) -> dict[str, str]:
    """Public digest of every owner."""
    return {view.name: view.public_digest for view in window.client.snapshot.owners}


def test_a_failed_stage_publishes_nothing_and_the_next_chunk_succeeds(window, wait) -> None:
    client = window.client
    client.send(ArmFault("layer.3.qsa.select", "nonfinite", times=1, skip=2))
    client.send(Run(to_position=10))
    settle(window, wait)
    assert [r.outcome for r in client.records] == ["ok", "ok"]
    before = digests(window)
    client.send(Run(to_position=30))
    settle(window, wait)
    failed = client.records[2]
    assert (failed.outcome, failed.stage, failed.kind) == (
        "failed",
        "layer.3.qsa.select",
        "nonfinite",
    )
    assert failed.digests_before == failed.digests_after
    assert dict(failed.digests_after) == before
    assert digests(window) == before
    assert window.run_panel.track.n_live == 10
    journal = window.docks.panels["journal"]
    assert journal is not None
    window.step_chunk()
    wait(lambda: len(client.records) == 4, what="the next chunk")
    settle(window, wait)
    assert client.records[-1].outcome == "ok"
    assert client.snapshot.sequences[0].stop == 15
    assert digests(window)["tokens"] != before["tokens"]


def test_a_hole_is_refused_before_any_stage_and_shown_in_place(window, wait) -> None:
    client = window.client
    client.send(Run(to_position=10))
    settle(window, wait)
    before = digests(window)
    window.append_hole()
    settle(window, wait)
    record = client.records[-1]
    assert (record.outcome, record.reason) == ("rejected", "not-consecutive")
    assert (record.expected, record.given) == (12, 13)
    assert record.txn is None
    assert record.stages == ()
    assert digests(window) == before
    assert holes(window.run_panel.track) == [(12, 13)]
    assert "expected 12, given 13" in window.run_panel.refused.words.text()
    assert window.run_panel.go_to_hole(1)
    assert window.hub.selection.start == 12


def test_a_first_append_may_start_anywhere_but_not_have_a_hole(window, wait) -> None:
    client = window.client
    window.hub.change(None, seq=7)
    window.append_hole()
    settle(window, wait)
    assert (client.records[-1].expected, client.records[-1].given) == (102, 103)
    client.send(Feed(7, (1, 2, 3), start=4096))
    client.send(Run())
    settle(window, wait)
    view = next(v for v in client.snapshot.sequences if v.seq == 7)
    assert (view.start, view.stop) == (4096, 4099)


def test_stepping_shows_the_private_ghost_and_the_flip(window, wait) -> None:
    client = window.client
    window.step_chunk()
    wait(lambda: client.records, what="a chunk")
    settle(window, wait)
    flips = client.snapshot.flips
    for _ in range(8):
        window.step_stage()
    settle(window, wait)
    track = window.run_panel.track
    assert track.ghost == (5, 10)
    assert track.frontier == 4
    assert client.snapshot.flips == flips
    window.update_actions()
    assert window.actions_["run.finish"].isEnabled()
    window.finish()
    wait(lambda: len(client.records) == 2, what="the end of the chunk")
    settle(window, wait)
    assert client.snapshot.flips == flips + 1
    assert window.run_panel.track.ghost is None
    assert window.run_panel.track.frontier == 9


def test_discarding_leaves_everything_as_it_was(window, wait) -> None:
    client = window.client
    window.step_token()
    wait(lambda: client.records, what="a chunk")
    settle(window, wait)
    before = digests(window)
    for _ in range(12):
        client.send(StepStage())
    client.ping()
    settle(window, wait)
    window.discard()
    settle(window, wait)
    assert client.snapshot.open is None
    assert digests(window) == before


def test_run_to_position_stops_there(window, wait) -> None:
    window.client.send(SetChunk(64))
    window.hub.change(None, start=23, stop=24)
    window.run_to_position()
    settle(window, wait)
    assert window.client.snapshot.sequences[0].stop in (23, 24)


def test_an_edit_op_is_undone(window, wait) -> None:
    client = window.client
    client.send(Run())
    settle(window, wait)
    before = digests(window)
    client.send(Do(EvictFront(0, 8)))
    settle(window, wait)
    assert client.snapshot.sequences[0].start == 8
    window.undo()
    settle(window, wait)
    assert client.snapshot.sequences[0].start == 0
    assert digests(window) == before


def test_time_travel_shows_the_past_and_the_frontier_of_then(window, wait) -> None:
    client = window.client
    client.send(Run())
    settle(window, wait)
    window.go_to_first()
    assert window.run_panel.track.n_live == 5
    window.return_to_live()
    assert window.run_panel.track.n_live == 64


def test_checks_answer_with_a_sentence(window, wait) -> None:
    heard: list[CheckResult] = []
    window.client.heard.connect(lambda b: heard.append(b) if isinstance(b, CheckResult) else None)
    window.client.send(Run(to_position=20))
    settle(window, wait)
    for name in ("audit", "same-as-fresh"):
        window.client.send(RunCheck(name))
        wait(lambda name=name: any(b.name == name for b in heard), what=name)
    assert all(b.ok for b in heard), [b.sentence for b in heard]


def test_saving_and_opening_a_session_gives_the_same_state(window, wait, tmp_path: Path) -> None:
    from engine.commands import SaveSession

    client = window.client
    client.send(Run(to_position=20))
    settle(window, wait)
    before = digests(window)
    path = tmp_path / "kept"
    client.send(SaveSession(str(path)))
    settle(window, wait)
    client.send(Run())
    settle(window, wait)
    assert digests(window) != before
    window.open_path(str(path))
    settle(window, wait)
    assert digests(window) == before
    assert window.settings.recent[0] == str(path)


def test_a_capture_is_opened_for_time_travel(window, wait, tmp_path: Path) -> None:
    from engine.commands import StartCapture, StopCapture

    client = window.client
    path = tmp_path / "run.bankflip"
    client.send(StartCapture(str(path)))
    client.send(Run(to_position=20))
    settle(window, wait)
    window.append_hole()
    client.send(StopCapture())
    settle(window, wait)
    kept = [(r.number, r.outcome) for r in client.records]
    window.close_session()
    window.open_path(str(path))
    wait(lambda: not window.is_opening, what="capture")
    assert client.offline
    assert [(r.number, r.outcome) for r in client.records] == kept
    assert window.run_panel.track.n_live == 20
    window.go_to_first()
    assert window.run_panel.track.n_live == 5
    window.update_actions()
    assert "can be looked at, not run" in window.actions_.reason("run.chunk")


def test_recording_is_begun_and_ended_from_the_menu(window, wait, tmp_path, monkeypatch) -> None:
    path = tmp_path / "r.bankflip"
    record = window.actions_["file.record"]
    answers = iter([(str(path), ""), ("", ""), (str(tmp_path / "no" / "r.bankflip"), "")])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: next(answers))
    record.trigger()
    assert record.isChecked()
    window.client.send(Run(to_position=10))
    settle(window, wait)
    record.trigger()
    settle(window, wait)
    assert not record.isChecked()
    with Capture(path) as capture:
        assert len(capture) == 2
    record.trigger()
    assert not record.isChecked(), "the dialog was cancelled"
    record.trigger()
    wait(lambda: not record.isChecked(), what="refusal of a folder that is not there")
    assert window.error_bar.isVisible()


def test_a_damaged_capture_is_refused_and_the_session_stays(window, wait, tmp_path: Path) -> None:
    path = tmp_path / "bad.bankflip"
    path.write_bytes(b"SQLite format 3\x00" + bytes(200))
    session = window.client.session
    window.open_path(str(path))
    wait(lambda: not window.is_opening)
    assert window.error_bar.isVisible()
    assert window.client.session is session


def test_a_scenario_opens_with_its_model_and_plays(window, wait) -> None:
    path = next(p for p in resources.scenarios() if p.stem == "hole-refused")
    window.open_path(str(path))
    wait(lambda: window.client.scenario is not None, what="scenario")
    panel = window.docks.panels["scenario"]
    panel.play_all()
    wait(lambda: len(panel.player.results) == len(panel.player.ops), what="all ops")
    expected = [e for e in json.loads(path.read_text())["expect"] if isinstance(e, str)]
    assert panel.player.results == expected


def test_a_model_folder_that_is_none_is_trouble_in_place(window, wait, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    heard: list[Trouble] = []
    window.client.trouble.connect(heard.append)
    session = window.client.session
    window.open_path(str(tmp_path))
    wait(lambda: bool(heard), what="trouble")
    assert window.error_bar.isVisible()
    assert window.client.session is session
    assert not window.is_opening


def test_running_is_paused_and_cancelled(window, wait) -> None:
    client = window.client
    client.send(Feed(0, tuple(range(200)) * 3))
    client.send(Run())
    wait(lambda: client.feed.running and len(client.records) > 1)
    window.pause()
    wait(lambda: not client.feed.running)
    settle(window, wait)
    wait(lambda: client.snapshot.open is None)
    n = client.snapshot.sequences[0].stop
    assert n < 664
    before = digests(window)
    for _ in range(6):
        client.send(StepStage())
    settle(window, wait)
    window.cancel()
    client.send(StepStage())
    settle(window, wait)
    wait(lambda: client.snapshot.open is None)
    assert client.records[-1].outcome == "cancelled"
    assert digests(window) == before


def test_fast_mode_publishes_the_same_bytes(window, wait) -> None:
    client = window.client
    client.send(Run(to_position=30))
    settle(window, wait)
    slow = digests(window)
    window.restart()
    wait(lambda: client.records == [] and client.feed.queued, what="restart")
    window.set_fast(True)
    client.send(Run(to_position=30))
    settle(window, wait)
    assert client.snapshot.mode == "fast"
    assert digests(window) == slow


def test_keys_drive_the_engine(qtbot, window, wait) -> None:
    window.activateWindow()
    window.run_panel.detail.setFocus()
    wait(lambda: window.actions_["run.run"].isEnabled())
    qtbot.keyClick(window.run_panel.detail, Qt.Key.Key_F9)
    wait(lambda: len(window.client.records) == 1)
    qtbot.keyClick(window.run_panel.detail, Qt.Key.Key_Space)
    wait(lambda: not window.client.feed.queued and not window.client.feed.running)
    assert window.client.snapshot.sequences[0].stop == 64


def test_a_session_begins_in_the_mode_and_with_the_budget_that_were_chosen(window, wait) -> None:
    client = window.client
    assert client.snapshot.mode == "inspect"
    window.choose_mode("fast")
    window.choose_budget(2**20)
    assert client.snapshot.mode == "inspect", "not the session in use"
    window.restart()
    wait(lambda: client.snapshot.mode == "fast" and client.feed.queued, what="new session")
    assert client.snapshot.budget_bytes == 2**20
    window.engine_bar.chunk.setValue(2000)
    window.feed((7,) * 2000)
    window.step_chunk()
    wait(lambda: len(client.records) == 1, what="a chunk")
    assert (client.records[0].kind, client.records[0].stage) == ("oom", "reserve")
    assert "the budget is 1,048,576" in client.records[0].sentence
    scenario = window.docks.panels["scenario"]
    assert scenario.load(str(resources.SCENARIOS / "demo.json"))
    wait(lambda: client.snapshot.capacity == 256, what="the scenario's session")
    assert (client.snapshot.mode, client.snapshot.budget_bytes) == ("fast", 2**20)


def test_the_tour_can_be_taken_by_keys_alone(qtbot, settings, wait, caught, tmp_path, monkeypatch):
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()

    def press(key: Qt.Key, held=Qt.KeyboardModifier.NoModifier) -> None:
        qtbot.keyClick(QApplication.focusWidget() or window, key, held)

    window.start_page.tour.setFocus()
    press(Qt.Key.Key_Space)
    player = lambda: window.docks.panels["scenario"].player  # noqa: E731
    wait(lambda: window.docks.panels and player().ops and not player().next_op, what="the demo")
    settle(window, wait)
    assert window.tour_progress.done == frozenset(), "the demo's own failure and hole"
    control = Qt.KeyboardModifier.ControlModifier
    press(Qt.Key.Key_G, control)
    qtbot.keyClicks(window.time_bar.place, "g0")
    press(Qt.Key.Key_Return)
    press(Qt.Key.Key_H, control)
    wait(lambda: window.client.records[-1].outcome == "rejected", what="a refusal")
    settle(window, wait)
    window.run_panel.detail.setFocus()
    press(Qt.Key.Key_H)
    window.docks.panels["problems"].setFocus()
    press(Qt.Key.Key_Comma)
    assert window.tour_progress.done == {"group", "hole", "event"}
    press(Qt.Key.Key_J, control)
    faults = window.docks.panels["faults"]
    wait(lambda: faults.isAncestorOf(QApplication.focusWidget()), 10, what="the fault injector")
    while QApplication.focusWidget() is not faults.arm:
        press(Qt.Key.Key_Tab)
    press(Qt.Key.Key_Space)
    settle(window, wait)
    press(Qt.Key.Key_D, control)
    press(Qt.Key.Key_Return)
    settle(window, wait)
    wait(lambda: window.actions_["run.chunk"].isEnabled(), what="a chunk to run")
    press(Qt.Key.Key_F9)
    wait(lambda: "failure" in window.tour_progress.done, what="the failure")
    assert window.client.records[-1].digests_before == window.client.records[-1].digests_after
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *a, **k: str(tmp_path))
    press(Qt.Key.Key_E, control)
    wait(lambda: window.tour_progress.is_finished, 120, what="the report")
    assert settings.tour == "finished"
    window.close()
    assert not caught, "\n".join(caught)
