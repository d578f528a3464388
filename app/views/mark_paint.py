"""How bookmarks and notes are drawn over a run: a shape with a label, readable on every fill."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app import glyphs, theme
from app.models.axis import Axis
from app.models.marks import Mark, Span

GLYPH = 12.0
PAD = 3.0
LONGEST_LABEL = 160.0
"""Pixels after which a label is cut."""


def draw_marks(
    painter: QPainter, axis: Axis, body: QRectF, marks: Sequence[Mark], metrics: QFontMetricsF
) -> list[tuple[QRectF, Mark]]:
    """Draw the marks of a sequence, in order, at the bottom of its lane; returns the plates.

    A mark whose plate would lie on the one before it shows its shape alone, and one whose shape
    would is left to the tooltip.
    """
    height = max(GLYPH, metrics.height()) + 2
    top = body.bottom() - height - 4
    drawn: list[tuple[QRectF, Mark]] = []
    free_from = body.left() - GLYPH
    places = [(m, m.place) for m in marks if isinstance(m.place, Span)]
    lefts = [axis.to_pixel(place.start) for _, place in places]
    for at, (mark, place) in enumerate(places):
        left, right = lefts[at], axis.to_pixel(place.stop)
        if right < body.left() or left > body.right():
            continue
        x = min(max(left, body.left()) + 1, body.right() - GLYPH - 2 * PAD)
        if x < free_from:
            continue
        room = (lefts[at + 1] if at + 1 < len(lefts) else body.right()) - x
        plate = _plate(x, top, height, min(room, body.right() - x), mark.label, metrics)
        _draw_plate(painter, plate, mark, metrics)
        if right - left > 1:
            _draw_extent(painter, max(left, body.left()), min(right, body.right()), body.bottom())
        drawn.append((plate, mark))
        free_from = plate.right() + 1
    return drawn


def _plate(
    x: float, top: float, height: float, room: float, words: str, metrics: QFontMetricsF
) -> QRectF:
    """As wide as the label, or the shape alone where there is no room for a letter or two."""
    alone = GLYPH + 2 * PAD
    wanted = alone + min(metrics.horizontalAdvance(words), LONGEST_LABEL) + PAD
    least = alone + metrics.horizontalAdvance(words[:1] + "…") + PAD
    width = wanted if wanted <= room else room if room >= least else alone
    return QRectF(x, top, width, height)


def _draw_plate(painter: QPainter, plate: QRectF, mark: Mark, metrics: QFontMetricsF) -> None:
    painter.setPen(QPen(theme.colour("accent"), 1))
    painter.setBrush(theme.colour("base"))
    painter.drawRect(plate.adjusted(0.5, 0.5, -0.5, -0.5))
    middle = plate.center().y()
    shape = QRectF(plate.left() + PAD, middle - GLYPH / 2, GLYPH, GLYPH)
    glyphs.paint(painter, shape, mark.glyph, theme.colour("accent"))
    room = plate.width() - GLYPH - 3 * PAD
    if room > 0:
        words = metrics.elidedText(mark.label, Qt.TextElideMode.ElideRight, room + 1)
        painter.setPen(theme.colour("text"))
        painter.drawText(
            QRectF(shape.right() + PAD, plate.top(), room + PAD, plate.height()),
            Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
            words,
        )


def _draw_extent(painter: QPainter, left: float, right: float, bottom: float) -> None:
    """A line under the marked positions, with an edge that parts it from any fill."""
    painter.fillRect(QRectF(left, bottom - 4, right - left, 4), theme.colour("base"))
    painter.fillRect(QRectF(left, bottom - 3, right - left, 2), theme.colour("accent"))
