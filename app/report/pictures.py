"""Pictures of the window's own panels, taken without a display.

A panel is built as in the window, told what the session was, sized, and rendered at twice its
size. The pictures are the same whenever the input is: no clock, no animation, no saved settings.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QSize, Qt
from PySide6.QtGui import QImage, QImageWriter
from PySide6.QtWidgets import QApplication, QWidget

from app import theme as themes
from app.client import Client
from app.report.scene import Scene
from app.views import PANELS, PanelSpec
from app.views.hub import SelectionHub
from engine.events import StagesChanged

SCALE: Final = 2.0
SIZES: Final = {
    "centre": QSize(1080, 420),
    "left": QSize(520, 620),
    "right": QSize(520, 620),
    "bottom": QSize(1080, 340),
}
"""Size of a panel by its place in the window, in device-independent pixels."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture of one panel."""

    spec: PanelSpec
    png: bytes
    width: int
    height: int
    description: str
    """What the panel itself says to a screen reader; may be empty."""


def application() -> QApplication:
    """The application of this process; without one, an offscreen one is made."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    return QApplication(["bankflip"])


def grab(scene: Scene, scheme: str, only: Sequence[str] = ()) -> list[Shot]:
    """Pictures of every panel (or those with the ids in `only`), in the order of `PANELS`.

    A panel that has nothing to say in this scene is shown as it stands in the window then.
    """
    app = application()
    before = themes.scheme()
    themes.apply(app, scheme)
    try:
        return [shoot(spec, scene) for spec in PANELS if not only or spec.id in only]
    finally:
        if before != scheme:
            themes.apply(app, before)


def shoot(spec: PanelSpec, scene: Scene) -> Shot:
    """One panel, built, told and rendered."""
    client, hub = Client(), SelectionHub()
    widget = build(spec, client, hub)
    try:
        tell(widget, client, scene)
        size = SIZES.get(spec.area, SIZES["centre"])
        return Shot(
            spec, render(widget, size), size.width(), size.height(), widget.accessibleDescription()
        )
    finally:
        widget.close()
        widget.deleteLater()
        client.deleteLater()
        hub.deleteLater()
        QApplication.sendPostedEvents()


def build(spec: PanelSpec, client: Client, hub: SelectionHub) -> QWidget:
    """The panel, connected to the client as the window connects it."""
    module, _, name = spec.target.partition(":")
    widget = getattr(importlib.import_module(module), name)(client, hub, None)
    for signal, slot in (
        (client.snapshot_changed, "show_snapshot"),
        (client.record_added, "show_record"),
        (client.stages_changed, "show_stages"),
        (client.heard, "show_event"),
    ):
        method = getattr(widget, slot, None)
        if method is not None:
            signal.connect(method)  # type: ignore[union-attr]
    assert isinstance(widget, QWidget)
    return widget


def tell(widget: QWidget, client: Client, scene: Scene) -> None:
    """Everything that the session said, then the record to look at."""
    for body in scene.events:
        client.receive(0, body)
    for record in scene.records:
        client.receive(0, record)
    focus = scene.shown or (scene.records[-1] if scene.records else None)
    if focus is not None and focus.stages:
        client.receive(0, StagesChanged(focus.txn or 0, focus.stages))
    if scene.snapshot is not None:
        client.receive(0, scene.snapshot)
    client.deliver_now()
    client.show(scene.shown)
    if scene.scenario is not None:
        client.scenario = scene.scenario
        client.scenario_opened.emit(scene.scenario)
    if scene.foreign is not None:
        client.foreign = scene.foreign
        client.foreign_opened.emit(scene.foreign)


def render(widget: QWidget, size: QSize) -> bytes:
    """PNG of a widget at `SCALE` times the size. The widget is never put on a screen."""
    widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    widget.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
    widget.setAutoFillBackground(True)
    widget.resize(size)
    widget.show()
    widget.resize(size)
    # layouts, deferred deletes and zero timers come to rest within a few turns
    for _ in range(5):
        QApplication.sendPostedEvents()
        QApplication.processEvents()
    image = QImage(size * SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(SCALE)
    image.fill(themes.colour("window"))
    widget.render(image, QPoint())
    return png(image)


def png(image: QImage) -> bytes:
    """The image as a PNG file."""
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"PNG")).write(image)
    buffer.close()
    return bytes(content.data())
