"""A `TableSource` as a Qt table model. Answers Qt's questions from it and decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont

from app import glyphs, theme
from app.models.table import Cell, StableRows, Table, TableSource

Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole
TEXT_ROLES = ("text2", "warning", "accent")
"""Colours that are readable as text; all other roles colour the glyph only."""
MAX_CACHED = 4_000
NO_INDEX = QModelIndex()
ALIGN = {
    "left": Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
    "right": Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
}


class TableModel(QAbstractTableModel):
    """Shows whatever source it was given last."""

    def __init__(self, source: TableSource | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.source: TableSource = source or Table(())
        self._n_rows = self.source.n_rows
        self._fonts: dict[tuple[bool, bool], QFont] = {}
        self._cells: dict[tuple[int, int], Cell] = {}

    def set_source(self, source: TableSource) -> None:
        """Show another table; rows that were added at the end, or only changed, keep the view."""
        self._fonts.clear()
        self._cells.clear()
        old, new = self._n_rows, source.n_rows
        if source.columns != self.source.columns or new < old or not self._same_rows(source):
            self.beginResetModel()
            self.source, self._n_rows = source, new
            self.endResetModel()
            return
        if new > old:
            self.beginInsertRows(NO_INDEX, old, new - 1)
            self.source, self._n_rows = source, new
            self.endInsertRows()
        else:
            self.source = source
        if old and source.columns and not isinstance(source, StableRows):
            last = self.index(old - 1, len(source.columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def _same_rows(self, source: TableSource) -> bool:
        """True where the rows that are shown now stand in the new source at the same place."""
        if not self._n_rows:
            return True
        ends = (0, self._n_rows - 1)
        return all(self.source.key(row) == source.key(row) for row in ends)

    # what Qt asks ---------------------------------------------------------------------------

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else self._n_rows

    def columnCount(self, parent: Index = NO_INDEX) -> int:
        return 0 if parent.isValid() else len(self.source.columns)

    def data(self, index: Index, role: int = Role.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= self._n_rows:
            return None
        column = self.source.columns[index.column()]
        if role == Role.TextAlignmentRole:
            return ALIGN[column.align]
        if role not in _ANSWERS:
            return None
        cell = self._cell(index.row(), index.column())
        if role == Role.FontRole:
            return self.font_of(column.mono, cell.bold)
        return _ANSWERS[role](cell)

    def _cell(self, row: int, column: int) -> Cell:
        """The cell, made once for the many roles that Qt asks for while it paints."""
        cell = self._cells.get((row, column))
        if cell is None:
            if len(self._cells) > MAX_CACHED:
                self._cells.clear()
            cell = self._cells[row, column] = self.source.cell(row, column)
        return cell

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Role.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or section >= len(self.source.columns):
            return None
        column = self.source.columns[section]
        if role == Role.DisplayRole:
            return column.title + ("\u2002" if column.align == "right" else "")
        if role == Role.AccessibleTextRole:
            return column.title
        if role == Role.ToolTipRole:
            return column.tip or column.title
        if role == Role.TextAlignmentRole:
            return ALIGN[column.align]
        return None

    def font_of(self, mono: bool, bold: bool) -> QFont | None:
        """The font of such a cell; None for the widget's own."""
        if not mono and not bold:
            return None
        if (mono, bold) not in self._fonts:
            font = theme.mono() if mono else theme.heading()
            font.setBold(bold)
            self._fonts[mono, bold] = font
        return self._fonts[mono, bold]


def _display(cell: Cell) -> str:
    return cell.text


def _tip(cell: Cell) -> str | None:
    return cell.tip or cell.text or None


def _accessible(cell: Cell) -> str:
    return cell.plain


def _foreground(cell: Cell) -> Any:
    return theme.colour(cell.role) if cell.role in TEXT_ROLES else None


def _decoration(cell: Cell) -> Any:
    return glyphs.icon(cell.glyph, cell.role) if cell.glyph else None


_ANSWERS: dict[int, Callable[[Cell], Any]] = {
    Role.DisplayRole: _display,
    Role.ToolTipRole: _tip,
    Role.AccessibleTextRole: _accessible,
    Role.ForegroundRole: _foreground,
    Role.DecorationRole: _decoration,
    Role.FontRole: _display,
}
