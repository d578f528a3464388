"""A heat map: rows by columns in colours, with axes, the value under the pointer and a mark.

pyqtgraph is imported when the first picture is drawn, since it costs a quarter of a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPen
from PySide6.QtWidgets import QGraphicsRectItem, QVBoxLayout, QWidget

from app import theme
from app.models import tensor


class HeatMap(QWidget):
    """Draws a `Matrix`; row numbers start at its first row."""

    hovered = Signal(int, int)
    """(row counted from 0, column) under the pointer."""
    picked = Signal(int, int)

    def __init__(self, name: str, parent=None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.plot: Any = None
        self.image: Any = None
        self.marker = QGraphicsRectItem()
        self.behind = QGraphicsRectItem()
        """What is not finite is left out of the picture, so that this shows through."""
        self.behind.setPen(QPen(Qt.PenStyle.NoPen))
        self._place: tuple[int, int, int] | None = None
        self.axes: tuple[str, str] = ("", "")
        self.names: tuple[str, ...] = ()
        self.matrix: tensor.Matrix | None = None
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(0, 0, 0, 0)

    def _make(self) -> None:
        import pyqtgraph as pg

        name = self.accessibleName()
        self.plot = pg.PlotWidget(background=None)
        self.plot.setAccessibleName(name)
        self.plot.viewport().setAccessibleName(f"{name}: picture")
        self.plot.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.image = pg.ImageItem(axisOrder="row-major")
        self.plot.addItem(self.behind)
        self.plot.addItem(self.image)
        self.plot.addItem(self.marker)
        self.plot.invertY(True)
        self.plot.scene().sigMouseMoved.connect(self._moved)
        self.plot.scene().sigMouseClicked.connect(self._clicked)
        self.box.addWidget(self.plot)

    def show_matrix(
        self,
        matrix: tensor.Matrix,
        limits: tensor.Limits,
        view: str,
        axes: tuple[str, str],
        names: tuple[str, ...] = (),
    ) -> None:
        """Draw other numbers; `axes` name rows and columns, `names` the rows one by one."""
        if self.plot is None:
            self._make()
        self.matrix = matrix
        shown = np.where(np.isfinite(matrix.values), matrix.values, np.float32(np.nan))
        self.image.setImage(shown, levels=(limits.low, limits.high), lut=tensor.palette(view))
        n_rows, n_columns = matrix.values.shape
        self.image.setRect(0, matrix.first, n_columns, n_rows)
        self.behind.setRect(0, matrix.first, n_columns, n_rows)
        self.behind.setBrush(theme.colour("hole"))
        self.axes, self.names = axes, names
        self._label()
        place = (matrix.first, n_rows, n_columns)
        if place != self._place:  # the same rows again keep the user's zoom
            self._place = place
            box = self.plot.getPlotItem().vb
            rows = (matrix.first, matrix.first + n_rows)
            box.setRange(xRange=(0, n_columns), yRange=rows, padding=0.02)
        self.setAccessibleDescription(tensor.facts(matrix, view))

    def _label(self) -> None:
        """Titles of the axes, and as many names of rows as have room."""
        colour = theme.colour("text2")
        for side in ("left", "bottom"):
            axis = self.plot.getAxis(side)
            axis.setPen(colour)
            axis.setTextPen(colour)
        self.plot.setLabel("left", self.axes[0])
        self.plot.setLabel("bottom", self.axes[1])
        room = max(1, (self.height() - 60) // self.fontMetrics().height())
        step = max(1, -(-len(self.names) // room))
        ticks = [(row + 0.5, self.names[row]) for row in range(0, len(self.names), step)]
        left = self.plot.getAxis("left")
        left.setTicks([ticks] if self.names else None)
        widest = max((self.fontMetrics().horizontalAdvance(name) for _, name in ticks), default=0)
        left.setWidth(widest + 24 if self.names else None)

    def showEvent(self, event) -> None:
        super().showEvent(event)
        if self.plot is not None:
            self._label()

    def resizeEvent(self, event) -> None:
        super().resizeEvent(event)
        if self.plot is not None:
            self._label()

    def mark(self, start: int, stop: int) -> None:
        """Outline rows by number, half-open; an empty range takes the outline away."""
        self.marker.setVisible(stop > start)
        if self.matrix is not None and stop > start:
            pen = QPen(theme.colour("accent"), 2)
            pen.setCosmetic(True)
            self.marker.setPen(pen)
            self.marker.setRect(0, start, self.matrix.values.shape[1], stop - start)

    def place(self, point) -> tuple[int, int]:
        """(row counted from 0, column) at a point of the scene."""
        at = self.plot.getPlotItem().vb.mapSceneToView(point)
        first = self.matrix.first if self.matrix is not None else 0
        return int(np.floor(at.y())) - first, int(np.floor(at.x()))

    def scene_point(self, row: float, column: float):
        """The point of the scene where a row (counted from 0) and a column lie."""
        from PySide6.QtCore import QPointF

        first = self.matrix.first if self.matrix is not None else 0
        return self.plot.getPlotItem().vb.mapViewToScene(QPointF(column, row + first))

    def _moved(self, point) -> None:
        if self.matrix is not None:
            self.hovered.emit(*self.place(point))

    def _clicked(self, event) -> None:
        if self.matrix is not None:
            row, column = self.place(event.scenePos())
            n_rows, n_columns = self.matrix.values.shape
            if 0 <= row < n_rows and 0 <= column < n_columns:
                self.picked.emit(row, column)


class ScaleBar(QWidget):
    """The colours from the lowest to the highest value."""

    def __init__(self, parent=None) -> None:
        super().__init__(parent)
        self.colours = tensor.palette("public")
        self.setMinimumSize(40, 14)
        self.setAccessibleName(self.tr("Colours from low to high"))

    def show_palette(self, colours) -> None:
        """Use other colours."""
        self.colours = colours
        self.update()

    def paintEvent(self, event) -> None:
        row = np.ascontiguousarray(self.colours[None, :, [2, 1, 0, 3]])
        image = QImage(row.data, row.shape[1], 1, row.shape[1] * 4, QImage.Format.Format_RGB32)
        painter = QPainter(self)
        inset = (self.height() - 12) // 2
        bar = self.rect().adjusted(0, inset, 0, -inset)
        painter.drawImage(bar, image)
        painter.setPen(theme.colour("line"))
        painter.drawRect(bar.adjusted(0, 0, -1, -1))
