"""A client without an engine, a hub, and a panel that is wired as the window does."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

from app import theme
from app.client import Client
from app.views.hub import SelectionHub


@pytest.fixture(params=["light", "dark"])
def scheme(request, qapp):
    """Run the test in both themes."""
    theme.apply(qapp, request.param)
    return request.param


class Desk:
    """A client, a hub, and what was sent."""

    def __init__(self, qtbot) -> None:
        self.qtbot = qtbot
        self.client, self.hub = Client(), SelectionHub()
        self.sent: list[object] = []
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


@pytest.fixture
def desk(qtbot, qapp):
    """See `Desk`."""
    desk = Desk(qtbot)
    yield desk
    desk.client.deliver_now()
