"""The sweep's grids as one picture: a sign and a colour for every cell, made without a display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPen

from app import theme as themes
from app.cli.common import write_atomically
from app.report.pictures import SCALE, application, png

if TYPE_CHECKING:
    from app.cli.sweep import Cell, Swept

CELL: Final = 26.0
MARGIN: Final = 16.0
LEGEND: Final = (
    ("done", "tick", "passes"),
    ("pending", "dash", "refused, as it must be"),
    ("failed", "cross", "fails"),
)


def draw(swept: Sequence[Swept], title: str, scheme: str, path: Path) -> None:
    """Write the picture, at twice its size in pixels. Raises: OSError."""
    themes.apply(application(), scheme)
    font = QFont("DejaVu Sans")
    font.setPixelSize(13)
    metrics = QFontMetricsF(font)
    width, height = _size(swept, metrics, title)
    image = QImage(int(width * SCALE), int(height * SCALE), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(SCALE)
    image.fill(themes.colour("base"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setFont(font)
    _paint(painter, swept, title, metrics)
    painter.end()
    write_atomically(path, png(image))


def _row_width(part: Swept, metrics: QFontMetricsF) -> float:
    widths = [metrics.horizontalAdvance(row) for row in part.grid.rows]
    return max([*widths, 0.0]) + 12


def _column_height(part: Swept, metrics: QFontMetricsF) -> float:
    widths = [metrics.horizontalAdvance(column) for column in part.grid.columns]
    # columns are written at 45 degrees
    return max([*widths, 0.0]) * 0.71 + 16


def _size(swept: Sequence[Swept], metrics: QFontMetricsF, title: str) -> tuple[float, float]:
    height = MARGIN * 2 + 60
    width = max(metrics.horizontalAdvance(title) * 1.5, 420.0) + 2 * MARGIN
    for part in swept:
        height += 34 + _column_height(part, metrics) + CELL * len(part.grid.rows)
        height += 20 * len(part.grid.left_out)
        across = _row_width(part, metrics) + CELL * len(part.grid.columns)
        notes = [metrics.horizontalAdvance(text) for text in part.grid.left_out]
        width = max(width, across + _column_height(part, metrics) + 2 * MARGIN, *notes, 0)
    return width, height


def _paint(painter: QPainter, swept: Sequence[Swept], title: str, metrics: QFontMetricsF) -> None:
    y = MARGIN + 12
    _heading(painter, title, MARGIN, y, 17)
    y += 26
    x = MARGIN
    for role, sign, words in LEGEND:
        _cell(painter, QRectF(x, y - 13, 18, 18), role, sign)
        painter.setPen(themes.colour("text2"))
        painter.drawText(QPointF(x + 24, y), words)
        x += 40 + metrics.horizontalAdvance(words)
    y += 14
    for part in swept:
        y = _grid(painter, part, metrics, y + 26)


def _heading(painter: QPainter, text: str, x: float, y: float, pixels: int) -> None:
    painter.save()
    font = QFont(painter.font())
    font.setPixelSize(pixels)
    font.setBold(True)
    painter.setFont(font)
    painter.setPen(themes.colour("text"))
    painter.drawText(QPointF(x, y), text)
    painter.restore()


def _grid(painter: QPainter, part: Swept, metrics: QFontMetricsF, y: float) -> float:
    """One grid below `y`; returns where it ends."""
    bad = sum(not cell.ok for cell in part.cells)
    words = f"{bad} of {len(part.cells)} fail" if bad else f"all {len(part.cells)} pass"
    _heading(painter, f"{part.grid.name.capitalize()}: {words}", MARGIN, y, 14)
    left = MARGIN + _row_width(part, metrics)
    top = y + _column_height(part, metrics)
    painter.setPen(themes.colour("text"))
    for number, column in enumerate(part.grid.columns):
        painter.save()
        painter.translate(left + CELL * number + CELL / 2, top - 4)
        painter.rotate(-45)
        painter.drawText(QPointF(0, 0), column)
        painter.restore()
    found = {(cell.row, cell.column): cell for cell in part.cells}
    for at, row in enumerate(part.grid.rows):
        painter.setPen(themes.colour("text"))
        painter.drawText(QPointF(MARGIN, top + CELL * at + CELL * 0.68), row)
        for number, column in enumerate(part.grid.columns):
            place = QRectF(left + CELL * number + 2, top + CELL * at + 2, CELL - 4, CELL - 4)
            role, sign = _look(found.get((row, column)))
            _cell(painter, place, role, sign)
    end = top + CELL * len(part.grid.rows)
    painter.setPen(themes.colour("text2"))
    for text in part.grid.left_out:
        end += 20
        painter.drawText(QPointF(MARGIN, end), f"Not tried: {text}")
    return end


def _look(cell: Cell | None) -> tuple[str, str]:
    if cell is None:
        return "", ""
    if not cell.ok:
        return "failed", "cross"
    return ("done", "tick") if cell.result == "ok" else ("pending", "dash")


def _cell(painter: QPainter, place: QRectF, role: str, sign: str) -> None:
    if not role:
        painter.setPen(QPen(themes.colour("line"), 1, Qt.PenStyle.DotLine))
        painter.drawRect(place)
        return
    fill = themes.colour(role)
    painter.fillRect(place, fill)
    pen = QPen(QColor(themes.text_on(role)), 2)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    x, y, w, h = place.x(), place.y(), place.width(), place.height()
    lines = {
        "tick": ((0.25, 0.55, 0.43, 0.72), (0.43, 0.72, 0.75, 0.3)),
        "dash": ((0.28, 0.5, 0.72, 0.5),),
        "cross": ((0.28, 0.28, 0.72, 0.72), (0.28, 0.72, 0.72, 0.28)),
    }
    for x1, y1, x2, y2 in lines[sign]:
        painter.drawLine(QPointF(x + w * x1, y + h * y1), QPointF(x + w * x2, y + h * y2))
