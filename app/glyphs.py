"""The small shapes that say a state without its colour: tick, cross, dash and the like.

Drawn as paths, since no font and no icon theme can be assumed. Colours come from the theme.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPen, QPixmap, QPolygonF

from app import theme

SIZE: Final = 12
"""Edge of a glyph in a table row, in pixels."""

_LINES: Final = {
    "tick": ((0.12, 0.55), (0.40, 0.82), (0.90, 0.20)),
    "dash": ((0.15, 0.50), (0.85, 0.50)),
    "note": (
        (0.15, 0.10),
        (0.60, 0.10),
        (0.85, 0.38),
        (0.85, 0.90),
        (0.15, 0.90),
        (0.15, 0.10),
    ),
    "link": ((0.20, 0.80), (0.80, 0.20), (0.35, 0.20), (0.80, 0.20), (0.80, 0.65)),
}
_FILLED: Final = {
    "triangle": ((0.22, 0.12), (0.88, 0.50), (0.22, 0.88)),
    "bolt": ((0.60, 0.02), (0.15, 0.58), (0.46, 0.58), (0.38, 0.98), (0.86, 0.40), (0.54, 0.40)),
    "bookmark": ((0.22, 0.04), (0.78, 0.04), (0.78, 0.98), (0.50, 0.70), (0.22, 0.98)),
    "square": ((0.12, 0.12), (0.88, 0.12), (0.88, 0.88), (0.12, 0.88)),
}
NAMES: Final = (*_LINES, *_FILLED, "cross", "disc", "ring", "warning")


def paint(painter: QPainter, rect: QRectF, glyph: str, colour: QColor) -> None:
    """Draw a glyph into `rect`; an unknown one draws nothing."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(colour, max(1.5, rect.width() / 7))
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if glyph in _LINES:
        painter.drawPolyline(_polygon(rect, _LINES[glyph]))
    elif glyph in _FILLED:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPolygon(_polygon(rect, _FILLED[glyph]))
    elif glyph == "cross":
        painter.drawLine(_point(rect, 0.18, 0.18), _point(rect, 0.82, 0.82))
        painter.drawLine(_point(rect, 0.82, 0.18), _point(rect, 0.18, 0.82))
    elif glyph in ("disc", "ring"):
        if glyph == "disc":
            painter.setBrush(colour)
        inset = rect.width() * 0.18
        painter.drawEllipse(rect.adjusted(inset, inset, -inset, -inset))
    elif glyph == "warning":
        painter.drawPolygon(_polygon(rect, ((0.50, 0.08), (0.95, 0.90), (0.05, 0.90))))
        painter.drawLine(_point(rect, 0.50, 0.40), _point(rect, 0.50, 0.62))
        painter.drawPoint(_point(rect, 0.50, 0.77))
    painter.restore()


def _point(rect: QRectF, x: float, y: float) -> QPointF:
    return QPointF(rect.x() + x * rect.width(), rect.y() + y * rect.height())


def _polygon(rect: QRectF, points: tuple[tuple[float, float], ...]) -> QPolygonF:
    return QPolygonF([_point(rect, x, y) for x, y in points])


def icon(glyph: str, role: str) -> QIcon:
    """A glyph for a table cell, readable on a selected row as well."""
    app = QGuiApplication.instance()
    selected = QGuiApplication.palette().highlightedText().color().name() if app else "#FFFFFF"
    return _icon(glyph, theme.colour(role or "text").name(), selected)


@cache
def _icon(glyph: str, colour: str, selected: str) -> QIcon:
    result = QIcon()
    for scale in (1.0, 2.0):
        result.addPixmap(_pixmap(glyph, colour, scale), QIcon.Mode.Normal)
        result.addPixmap(_pixmap(glyph, selected, scale), QIcon.Mode.Selected)
    return result


def _pixmap(glyph: str, colour: str, scale: float) -> QPixmap:
    pixmap = QPixmap(round(SIZE * scale), round(SIZE * scale))
    pixmap.setDevicePixelRatio(scale)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    paint(painter, QRectF(0, 0, SIZE, SIZE), glyph, QColor(colour))
    painter.end()
    return pixmap
