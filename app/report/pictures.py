"""Pictures of the window's own panels, taken without a display.

A panel is built as in the window, told what the session was, sized, and rendered at twice its
size. The pictures are the same whenever the input is: no clock, no animation, no saved settings.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QPoint,
    QSize,
    Qt,
    QTimer,
)
from PySide6.QtGui import QImage, QImageWriter
from PySide6.QtWidgets import QApplication, QWidget

from app import theme as themes
from app.client import Client
from app.models.selection import Selection
from app.offscreen import quiet
from app.report.scene import Scene
from app.views import PANELS, PanelSpec
from app.views.hub import SelectionHub
from engine.commands import Do, Limits, ReadArray
from engine.driver import Driver
from engine.events import StagesChanged
from engine.progress import CancelToken
from engine.snapshot import Record

RUN_MAP: Final = PanelSpec(
    "run", "Run map", "app.views.run_panel:RunPanel", "centre", "Positions, groups, tail and holes"
)
ALL_PANELS: Final = (RUN_MAP, *PANELS)
"""The run map is the window's fixed centre, the others are its docks."""
OF_FOREIGN: Final = ("run", "findings")
"""Panels that show state of another engine."""
NOT_OF_SESSION: Final = ("findings", "marks")
"""Panels of another engine's state, and what the report lists by itself."""

KEYS: Final = "qsa.kv"
"""The owner whose array a picture of the end shows."""
SOON_MS: Final = 2_000
STILL_TURNS: Final = 3
LONGEST_WAIT_S: Final = 20.0

SCALE: Final = 2.0
SIZES: Final = {
    "centre": QSize(1080, 420),
    "left": QSize(520, 620),
    "right": QSize(520, 620),
    "bottom": QSize(1080, 340),
}
"""Size of a panel by its place in the window, in device-independent pixels."""
OWN_SIZES: Final = {
    "run": QSize(1080, 380),
    "pipeline": QSize(1080, 300),
    "cells": QSize(1080, 300),
    "spans": QSize(1080, 220),
    "problems": QSize(1080, 260),
    "checks": QSize(1080, 180),
    "findings": QSize(1080, 380),
}
"""Panels that say what they have to say in less."""


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
    """Pictures of every panel of the scene (or those in `only`), in the order of `ALL_PANELS`."""
    app = application()
    before = themes.scheme()
    themes.apply(app, scheme)
    try:
        with quiet():
            return [shoot(spec, scene) for spec in panels_of(scene) if not only or spec.id in only]
    finally:
        if before != scheme:
            themes.apply(app, before)


def panels_of(scene: Scene) -> tuple[PanelSpec, ...]:
    """The panels that show this kind of state."""
    if scene.foreign is not None:
        return tuple(spec for spec in ALL_PANELS if spec.id in OF_FOREIGN)
    left_out = (*NOT_OF_SESSION, *(("scenario",) if scene.scenario is None else ()))
    return tuple(spec for spec in ALL_PANELS if spec.id not in left_out)


def shoot(spec: PanelSpec, scene: Scene) -> Shot:
    """One panel, built, told and rendered."""
    client, hub = Client(), SelectionHub()
    widget = build(spec, client, hub)
    try:
        tell(widget, client, hub, scene)
        size = OWN_SIZES.get(spec.id) or SIZES.get(spec.area, SIZES["centre"])
        return Shot(
            spec,
            render(widget, size, client),
            size.width(),
            size.height(),
            widget.accessibleDescription(),
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


def tell(widget: QWidget, client: Client, hub: SelectionHub, scene: Scene) -> None:
    """Everything that the session said, then the record to look at, then a selection."""
    if scene.foreign is not None:
        client.adopt_foreign([scene.foreign], scene.group_size)
        if hasattr(widget, "show_foreign"):
            widget.show_foreign(client.tracks)
        return
    answer(client, scene)
    for body in scene.events:
        client.receive(0, body)
    client.deliver_now()
    if scene.scenario is not None:
        client.scenario = scene.scenario
        client.scenario_opened.emit(scene.scenario)
    if scene.scenario is not None and hasattr(widget, "play_all"):
        widget.play_all()  # asks for its ops one by one and hears what each gave
    else:
        for record in scene.records:
            client.receive(0, record)
    focus = scene.shown or (scene.records[-1] if scene.records else None)
    if focus is not None and focus.stages:
        client.receive(0, StagesChanged(focus.txn or 0, focus.stages))
    if scene.snapshot is not None:
        client.receive(0, scene.snapshot)
    client.deliver_now()
    client.show(scene.shown)
    if focus is not None:
        hub.select(selection_of(focus, scene))


def answer(client: Client, scene: Scene) -> None:
    """Let the scene's engine answer what panels ask to see, and its records what they do."""
    driver = Driver(client.receive, CancelToken())
    driver.engine = scene.engine
    records = iter(scene.records)

    def handle(ticket: int, command: object) -> None:
        if isinstance(command, Do):
            record = next(records, None)
            if record is not None:
                client.receive(ticket, record)
        elif scene.engine is not None and isinstance(command, (ReadArray, Limits)):
            driver.handle(command, ticket)

    client.sent.connect(handle)


def selection_of(record: Record, scene: Scene) -> Selection:
    """The record, its stage, and the last live position of its sequence; at the end also keys."""
    view = next((v for v in record.sequences if v.seq == record.seq and v.n_live), None)
    selection = Selection(seq=record.seq, event=record.number, stage=record.stage or None)
    if view is not None:
        selection = selection.change(start=view.stop - 1, stop=view.stop)
    return (
        selection.change(owner=KEYS) if scene.engine is not None and not scene.shown else selection
    )


def render(widget: QWidget, size: QSize, client: Client) -> bytes:
    """PNG of a widget at `SCALE` times the size. The widget is never put on a screen."""
    widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    widget.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
    widget.setAutoFillBackground(True)
    widget.resize(size)
    widget.show()
    widget.resize(size)
    settle(widget, client)
    image = QImage(size * SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(SCALE)
    image.fill(themes.colour("window"))
    widget.render(image, QPoint())
    return png(image)


def settle(widget: QWidget, client: Client) -> None:
    """Turn the event loop until the panel has drawn all that it was told, and asked all it asks.

    Panels collect changes for some milliseconds before they rebuild, so what is waited for is
    that none of their timers is due soon any more, not a time.
    """
    end = time.monotonic() + LONGEST_WAIT_S
    still = 0
    while still < STILL_TURNS and time.monotonic() < end:
        QApplication.sendPostedEvents()
        QApplication.processEvents()
        client.deliver_now()
        flush = getattr(widget, "flush", None)
        if flush is not None:
            flush()
        due = [
            timer
            for timer in widget.findChildren(QTimer)
            if timer.isActive() and timer.isSingleShot() and timer.interval() <= SOON_MS
        ]
        still = 0 if due else still + 1
        time.sleep(0.002)


def png(image: QImage) -> bytes:
    """The image as a PNG file."""
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"PNG")).write(image)
    buffer.close()
    return bytes(content.data())
