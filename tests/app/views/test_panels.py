"""Every panel: empty, one event, many, time travel, both themes, names, pictures, small docks."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QAbstractItemView, QLabel, QWidget

from app.views import PANELS
from app.views.panel import Panel
from app.views.tables import TableView
from engine.snapshot import ArraySlice
from tests.helpers import sessions


def kinds():
    for spec in PANELS:
        module, _, name = spec.target.partition(":")
        kind = getattr(importlib.import_module(module), name)
        if issubclass(kind, Panel):
            yield pytest.param(kind, id=spec.id)


ALL = list(kinds())


def texts(panel: QWidget) -> str:
    """All that is written in the panel's labels."""
    return " ".join(w.text() for w in panel.findChildren(QLabel) if w.isVisibleTo(panel))


def rows(panel: QWidget) -> int:
    """Rows in all its tables."""
    return sum(v.table.rowCount() for v in panel.findChildren(TableView) if v.isVisibleTo(panel))


def painted(panel: QWidget) -> np.ndarray:
    """The panel's picture, [height, width, 4] uint8."""
    image = panel.grab().toImage().convertToFormat(panel.grab().toImage().Format.Format_RGB32)
    raw = np.frombuffer(image.constBits(), np.uint8)
    return raw.reshape(image.height(), image.bytesPerLine() // 4, 4)[:, : image.width(), :3].copy()


def answer_arrays(desk):
    """Give every array that was asked for, as the engine would."""
    for command in list(desk.sent):
        if type(command).__name__ == "ReadArray":
            values = np.linspace(-1, 1, 24 * 16, dtype=np.float32).reshape(24, 16)
            given = (command.owner, command.layer, command.part, command.seq, command.bank)
            desk.client.receive(0, ArraySlice(*given, command.start or 0, values))
    desk.client.deliver_now()


@pytest.mark.parametrize("kind", ALL)
def test_empty_panel_says_what_is_missing(desk, scheme, kind):
    panel = desk.open(kind)
    panel.flush()
    assert texts(panel).strip()
    assert rows(panel) == 0


@pytest.mark.parametrize("kind", ALL)
def test_one_event(desk, kind):
    panel = desk.open(kind)
    sessions.fill(desk.client, [sessions.record(1, 0, 4)], sessions.sequence(0, 0, 4))
    desk.hub.change(seq=0, start=1, stop=2, event=1)
    panel.flush()
    answer_arrays(desk)
    panel.flush()
    assert painted(panel).std() > 5


@pytest.mark.parametrize("kind", ALL)
def test_many_events_in_both_themes(desk, scheme, kind):
    panel = desk.open(kind)
    sessions.fill(
        desk.client,
        sessions.journal(400),
        sessions.sequence(0, 0, 1000),
        sessions.sequence(1, 4096, 4110, evicted=16),
        state="stale",
    )
    for event, position in ((30, 42), (45, 500), (400, 999)):
        desk.hub.change(seq=0, start=position, stop=position + 1, event=event, owner="qsa.kv")
        panel.flush()
    desk.client.show(desk.client.records[29])
    panel.flush()
    desk.client.show(None)
    panel.flush()
    answer_arrays(desk)
    panel.flush()
    assert painted(panel).std() > 5


@pytest.mark.parametrize("kind", ALL)
def test_a_new_session_forgets_the_old_one(desk, kind):
    panel = desk.open(kind)
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 100))
    panel.flush()
    sessions.fill(desk.client, [sessions.record(1, 0, 4)], sessions.sequence(0, 0, 4))
    panel.flush()
    for view in panel.findChildren(TableView):
        titles = [column.title for column in view.table.source.columns]
        if "Event" in titles:
            assert view.table.rowCount() <= 1


@pytest.mark.parametrize("kind", ALL)
def test_every_widget_has_an_accessible_name(desk, kind):
    panel = desk.open(kind)
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 100))
    answer_arrays(desk)
    panel.flush()
    inner = ("qt_", "QStyle")
    nameless = [
        f"{type(w).__name__} {w.objectName()}"
        for w in [panel, *panel.findChildren(QWidget)]
        if not w.accessibleName() and not w.objectName().startswith(inner) and w.isVisible()
    ]
    assert nameless == []
    assert panel.words() or kind.__name__ in ("BanksPanel", "InspectorPanel", "JournalPanel",
                                              "FaultPanel", "EditPanel", "TensorPanel",
                                              "ScenarioPanel", "ProblemsPanel")  # fmt: skip


@pytest.mark.parametrize("kind", ALL)
def test_panels_fit_small_docks(desk, kind):
    panel = desk.open(kind, (320, 200))
    limit = QSize(760, 360)
    hint = panel.minimumSizeHint()
    assert hint.width() <= limit.width()
    assert hint.height() <= limit.height()


@pytest.mark.parametrize("kind", ALL)
def test_a_hidden_panel_is_not_rebuilt(desk, kind, monkeypatch):
    panel = desk.open(kind)
    panel.flush()
    panel.hide()
    calls = []
    monkeypatch.setattr(panel, "rebuild", lambda: calls.append(1))
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 100))
    assert calls == []
    panel.refresh()
    panel.show()
    assert calls == [1]


@pytest.mark.parametrize("kind", ALL)
def test_tables_copy_their_rows(desk, qapp, kind):
    panel = desk.open(kind)
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 100))
    panel.flush()
    for view in panel.findChildren(QAbstractItemView):
        if isinstance(view, TableView) and view.table.rowCount():
            view.choose_row(0)
            view.setFocus()
            panel.flush()  # as the timer does when it comes in between
            desk.qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
            lines = qapp.clipboard().text().splitlines()
            assert len(lines) == 2
            assert len(lines[0].split("\t")) == view.table.columnCount()
