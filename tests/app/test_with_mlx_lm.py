"""The window on a folder of mlx-lm: open, fail after a middle layer, go on, look at it all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.settings import Settings
from app.views import PANELS
from app.views.main_window import MainWindow
from engine.capture import Capture
from engine.commands import ClearFeed, Feed, Run, RunCheck, SetChunk, StartCapture, StopCapture
from engine.events import Trouble
from engine.snapshot import CheckResult
from tests.helpers.mlxlm_models import VOCABULARY, model_folder

PROMPT = tuple(int(i) for i in np.random.default_rng(8).integers(1, VOCABULARY, 30))


@pytest.fixture
def window(qtbot, settings: Settings, wait, caught, tmp_path: Path):
    """A hybrid model, opened as a person does it."""
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    window.open_paths([str(model_folder(tmp_path / "hybrid", "qwen3_next"))])
    wait(lambda: window.client.session is not None and window.client.feed.queued, what="session")
    yield window
    window.close()
    assert not caught, "\n".join(caught)


def settle(window: MainWindow, wait) -> None:
    window.client.ping()
    wait(lambda: window.client.is_quiet, what="quiet")


def digests(window: MainWindow) -> dict[str, str]:
    return {view.name: view.public_digest for view in window.client.snapshot.owners}


def feed_prompt(window: MainWindow, wait) -> None:
    for command in (ClearFeed(0), Feed(0, PROMPT), SetChunk(10)):
        window.client.send(command)
    settle(window, wait)


def test_what_is_fed_on_opening_is_known_to_the_model(window, wait) -> None:
    window.client.send(Run())
    settle(window, wait)
    assert {record.outcome for record in window.client.records} == {"ok"}
    assert window.run_panel.track.n_live == 64


def test_a_fault_after_a_middle_layer_changes_nothing_and_the_next_chunk_is_whole(
    window, wait
) -> None:
    client = window.client
    feed_prompt(window, wait)
    client.send(Run())
    settle(window, wait)
    never_failed = digests(window)

    window.restart()
    wait(lambda: client.records == [] and client.feed.queued, what="restart")
    feed_prompt(window, wait)
    window.step_chunk()
    wait(lambda: len(client.records) == 1, what="the first chunk")
    settle(window, wait)
    before = digests(window)
    window.raise_panel("faults")
    faults = window.docks.panels["faults"]
    faults.rebuild()
    faults.stage.setCurrentText("layer.2")
    faults.arm_fault()
    settle(window, wait)
    assert [fault[:2] for fault in client.faults.faults] == [("layer.2", "structural")]
    window.step_chunk()
    wait(lambda: len(client.records) == 2, what="the failure")
    settle(window, wait)
    failed = client.records[-1]
    assert (failed.outcome, failed.stage, failed.kind) == ("failed", "layer.2", "structural")
    assert failed.digests_before == failed.digests_after
    assert dict(failed.digests_after) == before == digests(window)
    assert window.run_panel.track.n_live == 10
    journal = window.docks.panels["journal"]
    journal.rebuild()
    table = journal.view.table.source
    shown = [table.cell(row, n).text for row in range(table.n_rows) for n in range(9)]
    assert any("layer.2" in words for words in shown), shown

    client.send(Run())
    settle(window, wait)
    assert [record.outcome for record in client.records] == ["ok", "failed", "ok", "ok"]
    assert digests(window) == never_failed


def test_every_panel_shows_the_session(window, wait) -> None:
    feed_prompt(window, wait)
    window.client.send(Run())
    settle(window, wait)
    for spec in PANELS:
        window.raise_panel(spec.id)
        settle(window, wait)
        panel = window.docks.panels[spec.id]
        assert panel is not None
        rebuild = getattr(panel, "rebuild", None)
        if rebuild is not None:
            rebuild()
    tensor = window.docks.panels["tensor"]
    shown = [tensor.array.itemData(n) for n in range(tensor.array.count())]
    assert ("layer.1", -1, "keys") in shown
    assert ("layer.0", -1, "state.0") in shown
    tensor.array.setCurrentIndex(shown.index(("layer.1", -1, "keys")))
    tensor.ask()
    settle(window, wait)
    tensor.rebuild()
    assert tensor.shown_matrix.shape[0] == len(PROMPT)
    assert "96 ids" in window.docks.panels["logits"].line.text()


def test_checks_capture_and_what_has_no_meaning(window, wait, tmp_path: Path) -> None:
    client = window.client
    heard: list[object] = []
    client.heard.connect(heard.append)
    path = tmp_path / "run.bankflip"
    client.send(StartCapture(str(path)))
    feed_prompt(window, wait)
    client.send(Run())
    settle(window, wait)
    window.append_hole()
    window.step_stage()
    client.send(StopCapture())
    settle(window, wait)
    assert client.records[-1].reason == "not-consecutive"
    assert any(isinstance(b, Trouble) and "one call" in b.sentence for b in heard)
    for name in ("audit", "same-as-fresh"):
        client.send(RunCheck(name))
        wait(lambda name=name: any(isinstance(b, CheckResult) and b.name == name for b in heard))
    assert all(b.ok for b in heard if isinstance(b, CheckResult))
    with Capture(path) as capture:
        assert [record.outcome for record in capture.records()] == ["ok", "ok", "ok", "rejected"]
        assert [s.name for s in capture.record(0).stages][2:6] == [f"layer.{n}" for n in range(4)]


def test_another_kind_of_model_takes_the_place_and_back(window, wait) -> None:
    client = window.client
    lm = client.session.model
    window.open_tiny()
    wait(lambda: client.session is not None and client.session.model != lm, what="own model")
    settle(window, wait)
    assert client.session.owners[0][0] == "history"
    window.open_paths([lm])
    wait(lambda: client.session.model == lm, what="mlx-lm again")
    settle(window, wait)
    assert client.session.owners[0][0] == "layer.0"
