"""A client without an engine, a hub, and a panel that is wired as the window does."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app import theme
from app.client import Client
from app.views.hub import SelectionHub
from app.views.run_detail import RunDetail
from engine.commands import Do, Feed, OpenModel, Run, SetChunk
from engine.driver import Driver
from engine.opjson import from_json
from engine.progress import CancelToken


@pytest.fixture(params=["light", "dark"])
def scheme(request, qapp):
    """Run the test in both themes."""
    theme.apply(qapp, request.param)
    return request.param


@pytest.fixture
def detail(qtbot) -> RunDetail:
    """A run's detail view of a known size."""
    widget = RunDetail()
    qtbot.addWidget(widget)
    widget.resize(800, 160)
    widget.show()
    return widget


class Desk:
    """A client, a hub, and what was sent."""

    def __init__(self, qtbot) -> None:
        self.qtbot = qtbot
        self.client, self.hub = Client(), SelectionHub()
        self.sent: list[object] = []
        self.driver: Driver | None = None
        self.client.sent.connect(lambda ticket, command: self.sent.append(command))

    def open(self, kind, size=(720, 420)):
        """Make a panel, connect the slots that it has, and show it."""
        panel = kind(self.client, self.hub)
        self.qtbot.addWidget(panel)
        pairs = (
            (self.client.snapshot_changed, "show_snapshot"),
            (self.client.record_added, "show_record"),
            (self.client.stages_changed, "show_stages"),
            (self.client.heard, "show_event"),
            (self.hub.changed, "show_selection"),
        )
        for signal, name in pairs:
            if hasattr(panel, name):
                signal.connect(getattr(panel, name))
        panel.resize(*size)
        panel.show()
        self.qtbot.waitExposed(panel)
        return panel

    def drive(self, model: str | None = None, **fields) -> None:
        """Put the real engine behind the client, in this thread, and open a session."""
        self.driver = Driver(self.client.receive, CancelToken())
        self.client.sent.connect(lambda ticket, command: self.driver.handle(command, ticket))
        self.client.send(OpenModel(model, **fields))
        self.settle()

    def click(self, view, row: int, column: int = 0) -> None:
        """Click a cell of a table, scrolled to."""
        index = view.table.index(row, column)
        view.scrollTo(index)
        place = view.visualRect(index).center()
        self.qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)

    def settle(self) -> None:
        """Let the engine work until it rests, and hand on what it told."""
        while self.driver is not None and self.driver.has_work:
            self.driver.turn()
        self.client.deliver_now()

    def do(self, **op):
        """One op now; returns its record."""
        self.client.send(Do(from_json(op)))
        self.settle()
        return self.client.records[-1]


@pytest.fixture
def desk(qtbot, qapp):
    """See `Desk`."""
    desk = Desk(qtbot)
    yield desk
    if desk.driver is not None:
        desk.driver.close()
    desk.client.deliver_now()


@pytest.fixture
def tiny(desk):
    """The tiny model after 22 tokens in chunks of five."""
    desk.drive("qwen4exp-tiny")
    desk.client.send(SetChunk(5))
    desk.client.send(Feed(0, tuple(range(22))))
    desk.client.send(Run())
    desk.settle()
    return desk
