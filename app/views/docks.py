"""Docks of the panels: made from `PANELS`, wired to the client, put in their default places."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QDockWidget,
    QFrame,
    QMainWindow,
    QScrollArea,
    QWidget,
)

from app.client import Client
from app.views import PanelSpec
from app.views.hub import SelectionHub

AREAS = {
    "top": Qt.DockWidgetArea.TopDockWidgetArea,
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
    "centre": Qt.DockWidgetArea.BottomDockWidgetArea,
}
ORDER = ("top", "left", "right", "centre", "bottom")


def make_panel(spec: PanelSpec, client: Client, hub: SelectionHub) -> QWidget:
    """Import and build a panel."""
    module, _, name = spec.target.partition(":")
    panel: QWidget = getattr(importlib.import_module(module), name)(client, hub)
    if not panel.objectName():
        panel.setObjectName(f"panel.{spec.id}")
    if not panel.accessibleName():
        panel.setAccessibleName(spec.title)
    return panel


def connect_panel(panel: QObject, client: Client, hub: SelectionHub) -> None:
    """Connect those of the well-known slots that a panel has."""
    for name, signal in (
        ("show_snapshot", client.snapshot_changed),
        ("show_record", client.record_added),
        ("show_stages", client.stages_changed),
        ("show_event", client.heard),
        ("show_selection", hub.changed),
    ):
        slot = getattr(panel, name, None)
        if slot is not None:
            signal.connect(slot)


class Holder(QWidget):
    """Gives a panel all the room there is and asks for the least that it can do with.

    Without it a scroll area would take the height that wrapped labels would like to have.
    """

    def __init__(self, panel: QWidget, title: str) -> None:
        super().__init__()
        self.setAccessibleName(f"{title}: room")
        self.panel = panel
        panel.setParent(self)

    def sizeHint(self) -> QSize:
        return self.panel.sizeHint()

    def minimumSizeHint(self) -> QSize:
        return self.panel.minimumSizeHint()

    def resizeEvent(self, event) -> None:
        self.panel.resize(self.size())

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().event(event)


class Shrinkable(QScrollArea):
    """Lets a dock be smaller than its panel wants; the panel then scrolls."""

    def __init__(self, panel: QWidget, title: str) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(f"{title}: scroll area")
        for part in (self.viewport(), self.horizontalScrollBar(), self.verticalScrollBar()):
            part.setAccessibleName(f"{title}: scroll area")
        self.setWidget(Holder(panel, title))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 80)

    def sizeHint(self) -> QSize:
        panel = self.widget()
        return panel.sizeHint() if panel is not None else super().sizeHint()


class Docks:
    """All docks of a window, by panel id."""

    def __init__(self, window: QMainWindow) -> None:
        self.window = window
        self.docks: dict[str, QDockWidget] = {}
        self.panels: dict[str, QWidget] = {}
        self.specs: dict[str, PanelSpec] = {}

    def add(self, spec: PanelSpec, panel: QWidget) -> None:
        """Put a panel in a dock; `place` puts the docks where they belong."""
        dock = QDockWidget(spec.title, self.window)
        dock.setObjectName(f"dock.{spec.id}")
        dock.setAccessibleName(spec.title)
        scrolls_itself = isinstance(panel, QAbstractScrollArea) or spec.id in ("cells", "pipeline")
        dock.setWidget(panel if scrolls_itself else Shrinkable(panel, spec.title))
        dock.setToolTip(spec.tooltip)
        panel.setProperty("docked", True)
        look_again = getattr(panel, "look_again", None)
        if look_again is not None:
            dock.visibilityChanged.connect(lambda _seen: look_again())
        toggle = dock.toggleViewAction()
        toggle.setObjectName(f"dock.{spec.id}.toggle")
        toggle.setStatusTip(spec.tooltip)
        self.docks[spec.id], self.panels[spec.id], self.specs[spec.id] = dock, panel, spec

    def stacks(self, area: str) -> list[list[str]]:
        """Panel ids of an area: those of one tab word share a stack."""
        found: dict[str, list[str]] = {}
        for id, spec in self.specs.items():
            if spec.area == area:
                found.setdefault(spec.tab or id, []).append(id)
        return list(found.values())

    def place(self) -> None:
        """The default layout, also from any other."""
        for id in self.docks:
            self.docks[id].setFloating(False)
            self.window.removeDockWidget(self.docks[id])
        above: dict[Qt.DockWidgetArea, QDockWidget] = {}
        for area in ORDER:
            self._place_area(area, above)
        for dock in self.docks.values():
            dock.show()
        for area in ORDER:
            for stack in self.stacks(area):
                self.docks[stack[0]].raise_()
        self._size()

    def _place_area(self, area: str, above: dict[Qt.DockWidgetArea, QDockWidget]) -> None:
        side = AREAS[area]
        split = Qt.Orientation.Vertical if area in ("left", "right") else Qt.Orientation.Horizontal
        previous: QDockWidget | None = None
        for stack in self.stacks(area):
            first = self.docks[stack[0]]
            if previous is not None:
                self.window.splitDockWidget(previous, first, split)
            elif side in above:
                self.window.splitDockWidget(above[side], first, Qt.Orientation.Vertical)
            else:
                self.window.addDockWidget(side, first)
            above.setdefault(side, first)
            previous = first
        # only now: a dock that is split off a tabbed one becomes one more tab
        for stack in self.stacks(area):
            for before, id in itertools.pairwise(stack):
                self.window.tabifyDockWidget(self.docks[before], self.docks[id])

    def _size(self) -> None:
        """Sizes that fit the default window; Qt shares what is over."""
        width, height = self.window.width(), self.window.height()
        shares = {"top": 0.14, "centre": 0.15, "bottom": 0.24}
        for area, share in shares.items():
            first = [self.docks[stack[0]] for stack in self.stacks(area)]
            if first:
                self._resize(first, int(height * share), Qt.Orientation.Vertical)
        for area in ("left", "right"):
            first = [self.docks[stack[0]] for stack in self.stacks(area)]
            if first:
                self._resize(first, int(width * 0.3), Qt.Orientation.Horizontal)
                shares_of = [int(height * share) for share in (0.36, 0.52, 0.3)][: len(first)]
                self.window.resizeDocks(first, shares_of, Qt.Orientation.Vertical)

    def _resize(self, docks: list[QDockWidget], size: int, way: Qt.Orientation) -> None:
        self.window.resizeDocks(docks, [size] * len(docks), way)

    def show_only_if(self, wanted: bool, ids: Iterable[str] | None = None) -> None:
        """Show or hide docks together."""
        for id in ids if ids is not None else list(self.docks):
            self.docks[id].setVisible(wanted)

    def raise_panel(self, id: str) -> QWidget | None:
        """Bring a panel to the front and give it the keyboard; None where there is none."""
        dock = self.docks.get(id)
        if dock is None:
            return None
        dock.show()
        dock.raise_()
        panel = self.panels[id]
        target = panel if panel.focusPolicy() != Qt.FocusPolicy.NoFocus else None
        target = target or next(
            (
                child
                for child in panel.findChildren(QWidget)
                if child.focusPolicy() & Qt.FocusPolicy.TabFocus and child.isEnabled()
            ),
            None,
        )
        if target is not None:
            target.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return panel
