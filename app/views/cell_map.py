"""Physical cells as a grid, in the colours of the run map, with the same selection."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app import theme
from app.models import cells as model
from app.models.cells import LEFTOVER, CellGrid
from app.models.sequences import ROLE_OF, Kind
from app.views import drawing

LARGEST, SMALLEST = 48.0, 1.0
SEPARATORS_FROM, LABELS_FROM = 8.0, 34.0
PATTERNS_FROM = 4.0
"""Pixels a cell from which its second cue is drawn where patterns are always on."""


class CellMap(drawing.Drawing):
    """The grid; rows scroll where cells would be smaller than can be seen."""

    picked = Signal(int)
    pointed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("cells.map", parent)
        self.setAccessibleName(self.tr("Cell map"))
        self.setAccessibleDescription(self.tr("Arrow keys move by a cell or a row"))
        self.grid: CellGrid | None = None
        self.columns = 16
        self.size_px = 12.0
        self.first_row = 0
        self._fitted = True
        self._cell: int | None = None
        self._ranges: list[tuple[int, int]] = []
        self.n_paints = 0

    def sizeHint(self) -> QSize:
        return QSize(400, 140)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 64)

    def set_grid(self, grid: CellGrid | None) -> None:
        """Show another state."""
        self.grid = grid
        self._lay_out()
        self.update()

    def set_selected(self, cell: int | None, ranges: list[tuple[int, int]], reveal: bool) -> None:
        """Mark the chosen cell and all cells of the selected positions."""
        self._cell, self._ranges = cell, ranges
        at = cell if cell is not None else (ranges[0][0] if ranges else None)
        if reveal and at is not None:
            self._reveal(at)
        self.tell_value()
        self.update()

    def _lay_out(self) -> None:
        """Choose columns (a multiple of 16) and the size of a cell for the space there is."""
        n = self.grid.n_cells if self.grid is not None else 0
        width, height = max(16, self.width()), max(16, self.height())
        if self._fitted:
            columns = model.columns_for(width, max(n, 64), height)
            size = min(width / columns, height / max(1, -(-max(n, 64) // columns)), LARGEST)
            self.columns, self.size_px = columns, max(SMALLEST, size)
        else:
            self.columns = max(16, int(width / self.size_px) // 16 * 16)
        if self.size_px >= 2:
            self.size_px = float(int(self.size_px))
        self.first_row = max(0, min(self.first_row, self.n_rows - self.rows_in_view))

    @property
    def n_rows(self) -> int:
        """Rows of the whole grid."""
        return -(-self.grid.n_cells // self.columns) if self.grid is not None else 0

    @property
    def rows_in_view(self) -> int:
        """Whole rows that fit."""
        return max(1, int(self.height() / self.size_px))

    def resizeEvent(self, event) -> None:
        self._lay_out()
        super().resizeEvent(event)

    def cell_at(self, x: float, y: float) -> int | None:
        """The cell under a pixel."""
        column, row = int(x // self.size_px), int(y // self.size_px) + self.first_row
        if self.grid is None or not 0 <= column < self.columns or row < 0:
            return None
        cell = row * self.columns + column
        return cell if cell < self.grid.n_cells else None

    def cell_rect(self, cell: int) -> QRectF:
        """Where a cell is drawn (may lie outside the view)."""
        row, column = divmod(cell, self.columns)
        size = self.size_px
        return QRectF(column * size, (row - self.first_row) * size, size, size)

    def _reveal(self, cell: int) -> None:
        row = cell // self.columns
        if row < self.first_row:
            self.first_row = row
        elif row >= self.first_row + self.rows_in_view:
            self.first_row = row - self.rows_in_view + 1

    # actions ------------------------------------------------------------------------------------

    def zoom(self, factor: float) -> None:
        self._fitted = False
        self.size_px = max(SMALLEST, min(LARGEST, self.size_px * factor))
        if self.size_px >= 2:
            grow = np.ceil if factor > 1 else np.floor
            self.size_px = float(grow(self.size_px))
        self._lay_out()
        self.update()

    def fit_all(self) -> None:
        self._fitted = True
        self._lay_out()
        self.update()

    def fit_selection(self) -> None:
        if self._cell is not None:
            self.zoom(LARGEST / self.size_px)
            self._reveal(self._cell)
            self.update()

    def pan(self, screens: float) -> None:
        rows = int(screens * self.rows_in_view) or (1 if screens > 0 else -1)
        self.first_row = max(0, min(self.first_row + rows, self.n_rows - self.rows_in_view))
        self.update()

    # reading ------------------------------------------------------------------------------------

    def words(self, cell: int) -> str:
        """What a cell holds, in words."""
        return model.words_at(self.grid, cell) if self.grid is not None else ""

    def accessible_value(self) -> str:
        if self.grid is None:
            return self.tr("no cells")
        if self._cell is not None:
            return self.words(self._cell)
        return f"{self.grid.n_cells:,} cells, {self.grid.count(LEFTOVER):,} free"

    def as_text(self) -> str:
        if self.grid is None:
            return ""
        if self._cell is not None and not self._ranges:
            return self.words(self._cell)
        cells = [c for a, b in self._ranges for c in range(a, b)] or range(self.grid.n_cells)
        return "\n".join(self.words(cell) for cell in cells)

    # mouse and keyboard -------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            cell = self.cell_at(event.pos().x(), event.pos().y())
            QToolTip.showText(event.globalPos(), "" if cell is None else self.words(cell), self)
            return True
        return super().event(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(1.25 if event.angleDelta().y() > 0 else 0.8)
        else:
            self.pan(-event.angleDelta().y() / 120 * 0.25)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().x(), event.position().y())
        if cell is not None:
            self.select_cell(cell)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().x(), event.position().y())
        self.pointed.emit(-1 if cell is None else cell)

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(-1)
        super().leaveEvent(event)

    def select_cell(self, cell: int) -> None:
        """Choose a cell as a click does."""
        if self.grid is None or self.grid.n_cells == 0:
            return
        self._cell = max(0, min(cell, self.grid.n_cells - 1))
        self._reveal(self._cell)
        self.update()
        self.tell_value()
        self.picked.emit(self._cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        page = self.rows_in_view * self.columns
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -self.columns,
            Qt.Key.Key_Down: self.columns,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
            Qt.Key.Key_Home: -(2**40),
            Qt.Key.Key_End: 2**40,
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.select_cell(step + (0 if self._cell is None else self._cell))

    def focusInEvent(self, event) -> None:
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event) -> None:
        self.update()
        super().focusOutEvent(event)

    # painting -----------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        self.n_paints += 1
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("window"))
        grid = self.grid
        if grid is None or grid.n_cells == 0:
            painter.setPen(theme.colour("text2"))
            text = self.tr("No physical cell to show")
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, text)
        else:
            self._draw_cells(painter, grid)
            self._draw_marks(painter, grid)
        self.draw_focus(painter)
        painter.end()

    def _visible(self, grid: CellGrid) -> tuple[int, int, int]:
        """First and last + 1 visible cell and the rows drawn."""
        rows = min(self.n_rows - self.first_row, int(self.height() / self.size_px) + 1)
        first = self.first_row * self.columns
        return first, min(grid.n_cells, first + rows * self.columns), rows

    def _draw_cells(self, painter: QPainter, grid: CellGrid) -> None:
        first, stop, rows = self._visible(grid)
        table = drawing.colour_table()
        table[LEFTOVER] = theme.rgb("alternate" if theme.patterns_always() else "line")
        colours = np.full(rows * self.columns, theme.rgb("window"), np.uint32)
        colours[: stop - first] = table[grid.codes[first:stop]]
        size = self.size_px
        target = QRectF(0, 0, self.columns * size, rows * size)
        drawing.draw_grid(painter, target, colours.reshape(rows, self.columns))
        if size < (PATTERNS_FROM if theme.patterns_always() else SEPARATORS_FROM):
            return
        line = theme.colour("window")
        for row in range(rows + 1):
            painter.fillRect(QRectF(0, row * size, target.width(), 1), line)
        for column in range(self.columns + 1):
            painter.fillRect(QRectF(column * size, 0, 1, target.height()), line)
        if stop - first <= 4096:
            self._draw_second_cues(painter, grid, first, stop)

    def _draw_second_cues(self, painter: QPainter, grid: CellGrid, first: int, stop: int) -> None:
        """Outline of tail cells, strokes through leftovers, a bar under shared cells, labels.

        A lattice on forgotten cells; lines on those of every second group where patterns are
        always on.
        """
        font = theme.mono()
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        lines = theme.patterns_always()
        for cell in range(first, stop):
            code = int(grid.codes[cell])
            rect = self.cell_rect(cell).adjusted(1, 1, 0, 0)
            if code == Kind.TAIL:
                painter.setPen(QPen(theme.colour("text"), 1))
                painter.drawRect(rect.adjusted(0.5, 0.5, -1, -1))
            elif code == LEFTOVER:
                painter.setPen(QPen(theme.colour("text2"), 1))
                painter.drawLine(rect.bottomLeft(), rect.topRight())
            elif code == Kind.FORGOTTEN or (code == Kind.GROUP_B and lines):
                drawing.draw_pattern(painter, rect.toRect(), Kind(code))
            if grid.sharing[cell] > 1:
                ink = theme.text_on(ROLE_OF[Kind(code)])
                painter.fillRect(QRectF(rect.left(), rect.bottom() - 3, rect.width(), 3), ink)
            if self.size_px >= LABELS_FROM and 0 < code < LEFTOVER:
                text = str(int(grid.positions[cell]))
                if metrics.horizontalAdvance(text) <= rect.width() - 2:
                    painter.setPen(theme.text_on(ROLE_OF[Kind(code)]))
                    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def _draw_marks(self, painter: QPainter, grid: CellGrid) -> None:
        first, stop, _ = self._visible(grid)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for start, count in grid.ghost:
            self._outline(painter, start, start + count, first, stop, drawing.dashed("private"))
        for start, end in self._ranges:
            self._outline(painter, start, end, first, stop, QPen(theme.colour("accent"), 2))
        if self._cell is not None and first <= self._cell < stop:
            rect = self.cell_rect(self._cell)
            grown = (
                rect.adjusted(-1, -1, 1, 1) if self.size_px >= 4 else rect.adjusted(-3, -3, 3, 3)
            )
            painter.setPen(QPen(theme.colour("base"), 4))
            painter.drawRect(grown)
            painter.setPen(QPen(theme.colour("text"), 2))
            painter.drawRect(grown)

    def _outline(
        self, painter: QPainter, start: int, end: int, first: int, stop: int, pen: QPen
    ) -> None:
        """One rectangle a row for a range of cells."""
        start, end = max(start, first), min(end, stop)
        painter.setPen(pen)
        while start < end:
            row_end = min(end, (start // self.columns + 1) * self.columns)
            rect = self.cell_rect(start)
            rect.setRight(self.cell_rect(row_end - 1).right())
            painter.drawRect(rect.adjusted(1, 1, -1, -1))
            start = row_end
