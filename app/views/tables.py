"""The table and tree of every panel: dense rows, keys for everything, copy as text in each."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QItemSelectionModel, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QFontMetrics, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFileDialog,
    QHeaderView,
    QMenu,
    QStyledItemDelegate,
    QTableView,
    QTreeView,
)

from app import theme
from app.adapters.table_model import TableModel
from app.adapters.tree_model import TreeModel
from app.models import table as tables
from app.models import tree as trees

SAMPLE_ROWS = 60
"""Rows looked at to choose the columns' widths."""
MAX_COPY_ROWS = 100_000
EN_SPACE = "\u2002"


class TableView(QTableView):
    """A QTableView over a `TableSource`; `activated_row` on Enter or a double click."""

    chosen = Signal(int)
    """Row that became the current one by the user's hand."""
    activated_row = Signal(int)

    def __init__(self, name: str, parent=None) -> None:
        super().__init__(parent)
        self.table = self.make_model()
        self.extra_actions: Callable[[QMenu, int], None] | None = None
        """Called with (menu, row) to add entries to the context menu."""
        self._fitted: tuple[object, ...] = ()
        self._fitted_rows = 0
        self._fitting = False
        self._by_hand: set[int] = set()
        self._longest: dict[int, int] = {}
        self._quiet = False
        self.setModel(self.table)
        self.setAccessibleName(name)
        self.setObjectName(name)
        self._set_up()
        for part, word in (
            (self.viewport(), "cells"),
            (self.horizontalHeader(), "header"),
            (self.verticalHeader(), "row header"),
        ):
            part.setAccessibleName(f"{name}: {word}")
        self.selectionModel().currentRowChanged.connect(self._current_changed)
        self.horizontalHeader().sectionResized.connect(self._section_resized)
        self.clicked.connect(self._clicked)
        self.activated.connect(lambda index: self.activated_row.emit(index.row()))

    def _set_up(self) -> None:
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        header = self.horizontalHeader()
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        header.setMinimumSectionSize(24)
        header.setDefaultSectionSize(40)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().hide()
        self.setItemDelegate(_Delegate(self))
        self._set_row_height()

    def _set_row_height(self) -> None:
        self.verticalHeader().setMinimumSectionSize(theme.row_height())
        self.verticalHeader().setDefaultSectionSize(theme.row_height())

    def minimumSizeHint(self) -> QSize:
        """Room for the header and two rows, so that docks can be made small."""
        return QSize(80, 3 * theme.row_height() + 4)

    # content ----------------------------------------------------------------------------------

    def make_model(self) -> TableModel:
        """The adapter; a table whose cells can be edited has another one."""
        return TableModel(parent=self)

    def set_table(self, source) -> None:
        """Show another table; the current row stays the current one where it is still there."""
        row = self.currentIndex().row()
        key = self.table.source.key(row) if 0 <= row < self.table.source.n_rows else None
        self._quiet = True
        self.table.set_source(source)
        if key is not None and self.currentIndex().row() < 0:
            self._find_again(source, key)
        self._quiet = False
        self._fit_columns(source)

    def _find_again(self, source, key: str) -> None:
        for row in range(min(source.n_rows, 10_000)):
            if source.key(row) == key:
                self.choose_row(row)
                return

    def choose_row(self, row: int) -> None:
        """Make a row the only selected one, whatever keys are held (`selectRow` minds Ctrl)."""
        flags = QItemSelectionModel.SelectionFlag
        index = self.table.index(row, max(0, self.currentIndex().column()))
        self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)

    def show_row(self, row: int | None) -> None:
        """Make a row the current one without telling anybody."""
        self._quiet = True
        if row is None:
            self.clearSelection()
        elif row != self.currentIndex().row() or not self.selectionModel().hasSelection():
            self.choose_row(row)
            self.scrollTo(self.table.index(row, 0))
        self._quiet = False

    def _current_changed(self, current, previous) -> None:
        if not self._quiet and current.isValid():
            self.chosen.emit(current.row())

    def _clicked(self, index) -> None:
        """A click on the row that is current already leads there again."""
        if index.row() == self.currentIndex().row():
            self.chosen.emit(index.row())

    def _fit_columns(self, source) -> None:
        """Widths from the titles and some rows; they grow with the content, not under a hand."""
        anew = (source.columns, theme.row_height(), self.font().pointSizeF())
        digits = len(str(source.n_rows)) if source.n_rows > SAMPLE_ROWS else source.n_rows
        if anew == self._fitted and digits == self._fitted_rows and source.n_rows > SAMPLE_ROWS:
            return
        fresh = anew != self._fitted
        self._fitted, self._fitted_rows = anew, digits
        if fresh:
            self._by_hand.clear()
            self._longest.clear()
        self._fitting = True
        for number in range(len(source.columns) - 1):
            wanted = self._wanted_width(source, number)
            if fresh or (number not in self._by_hand and wanted > self.columnWidth(number)):
                self.setColumnWidth(number, wanted)
        self._fitting = False

    def _wanted_width(self, source, number: int) -> int:
        """Pixels that a column's title and sampled cells need, at most 360; 0: no more than
        before."""
        cells = [source.cell(row, number) for row in _sample(source.n_rows)]
        longest = max((len(cell.text) + 2 * bool(cell.glyph) for cell in cells), default=0)
        if longest <= self._longest.get(number, -1):
            return 0
        self._longest[number] = longest
        column, normal = source.columns[number], self.fontMetrics()
        font = self.table.font_of(column.mono, False)
        metrics = normal if font is None else QFontMetrics(font)
        gap = metrics.horizontalAdvance(EN_SPACE) if column.align == "right" else 0
        wanted = max(
            normal.horizontalAdvance(column.title) + 8,
            column.width * metrics.horizontalAdvance("0"),
        )
        for cell in cells:
            width = metrics.horizontalAdvance(cell.text) + (18 if cell.glyph else 0)
            wanted = max(wanted, width + (width // 12 if cell.bold else 0))
        return int(min(wanted + gap + 14, 360))

    def _section_resized(self, number: int, old: int, new: int) -> None:
        if not self._fitting and number < self.horizontalHeader().count() - 1:
            self._by_hand.add(number)

    # keys, copy, menu -------------------------------------------------------------------------

    def rows(self) -> list[int]:
        """Selected rows in order; all rows when none is selected."""
        chosen = sorted({index.row() for index in self.selectionModel().selectedRows()})
        return chosen or list(range(min(self.table.source.n_rows, MAX_COPY_ROWS)))

    def copy(self) -> None:
        """Put the selected rows on the clipboard as tab-separated text."""
        QGuiApplication.clipboard().setText(tables.to_text(self.table.source, self.rows()))

    def copy_json(self) -> None:
        """Put the selected rows on the clipboard as JSON."""
        QGuiApplication.clipboard().setText(tables.to_json(self.table.source, self.rows()))

    def copy_csv(self) -> None:
        """Put all rows on the clipboard as comma-separated values."""
        QGuiApplication.clipboard().setText(tables.to_csv(self.table.source))

    def save_csv(self) -> None:
        """Ask for a file and write all rows into it."""
        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save table"), f"{self.accessibleName()}.csv", "CSV (*.csv)"
        )
        if path:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(tables.to_csv(self.table.source))

    def copy_picture(self) -> None:
        """Put a picture of the panel that the table is in on the clipboard."""
        panel = self.parentWidget()
        while panel is not None and not hasattr(panel, "rebuild"):
            panel = panel.parentWidget()
        QGuiApplication.clipboard().setPixmap((panel or self).grab())

    def event(self, event) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and _is_copy(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif _is_copy(event):
            self.copy_json()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.currentIndex().isValid():
                self.activated_row.emit(self.currentIndex().row())
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event) -> None:
        """Qt makes the first row the current one then; that is no choice of the user's."""
        had = self.currentIndex().isValid()
        self._quiet = True
        super().focusInEvent(event)
        if not had:
            self.selectionModel().clearCurrentIndex()
        self._quiet = False

    def changeEvent(self, event) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fitted = ()
            self._set_row_height()

    def contextMenuEvent(self, event) -> None:
        index = self.indexAt(event.pos())
        if event.reason() == event.Reason.Keyboard or not index.isValid():
            index = self.currentIndex()
        self.menu_for(index.row()).popup(self._menu_point(event, index))

    def _menu_point(self, event, index) -> QPoint:
        if event.reason() == event.Reason.Keyboard and index.isValid():
            return self.viewport().mapToGlobal(self.visualRect(index).bottomLeft())
        return QPoint(event.globalPos())

    def menu_for(self, row: int) -> QMenu:
        """The context menu of a row; deletes itself when it closes."""
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Row menu"))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if self.extra_actions is not None and row >= 0:
            self.extra_actions(menu, row)
            menu.addSeparator()
        entries = (
            (self.tr("Copy"), self.copy, QKeySequence.StandardKey.Copy),
            (self.tr("Copy as JSON"), self.copy_json, QKeySequence("Ctrl+Shift+C")),
            (self.tr("Copy all as CSV"), self.copy_csv, None),
            (self.tr("Save as CSV..."), self.save_csv, None),
            (self.tr("Copy picture of this panel"), self.copy_picture, None),
        )
        for words, slot, key in entries:
            action = QAction(words, menu)
            if key is not None:
                action.setShortcut(QKeySequence(key))
            action.triggered.connect(slot)
            menu.addAction(action)
        return menu


def _sample(n_rows: int):
    """The first and the last rows."""
    half = SAMPLE_ROWS // 2
    return [*range(min(n_rows, half)), *range(max(half, n_rows - half), n_rows)]


class _Delegate(QStyledItemDelegate):
    """Keeps a right-aligned number away from the text in the next column."""

    def initStyleOption(self, option, index) -> None:
        super().initStyleOption(option, index)
        if option.displayAlignment & Qt.AlignmentFlag.AlignRight:
            option.text += EN_SPACE


def _is_copy(event) -> bool:
    """Ctrl+C or Ctrl+Shift+C."""
    return event.key() == Qt.Key.Key_C and bool(
        event.modifiers() & Qt.KeyboardModifier.ControlModifier
    )


class PropertyTree(QTreeView):
    """Names and values; Enter or a click on a link leads there."""

    followed = Signal(object)
    """`Jump` of a line that was activated."""

    def __init__(self, name: str, parent=None) -> None:
        super().__init__(parent)
        self.tree = TreeModel(parent=self)
        self.setModel(self.tree)
        self.setAccessibleName(name)
        self.setObjectName(name)
        self.viewport().setAccessibleName(f"{name}: lines")
        self.header().setAccessibleName(f"{name}: header")
        self.setAlternatingRowColors(True)
        self.setUniformRowHeights(True)
        self.setIndentation(14)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.header().setStretchLastSection(True)
        self.setItemDelegate(_TallRows(self))
        self.clicked.connect(self._clicked)

    def set_nodes(self, nodes) -> None:
        """Show other nodes, opened."""
        if nodes != self.tree.nodes:
            self.tree.set_nodes(nodes)
            self.expandAll()
            self._fit()

    def _fit(self) -> None:
        metrics, names = self.fontMetrics(), list(_names(self.tree.nodes))
        wanted = max((metrics.horizontalAdvance(n) + 14 * d for n, d in names), default=60)
        self.setColumnWidth(0, min(wanted + 24, 200))

    def _clicked(self, index) -> None:
        if index.column() == 1:
            self._follow(index)

    def _follow(self, index) -> None:
        node = self.tree.node(index)
        if node is not None and node.jump is not None:
            self.followed.emit(node.jump)

    def copy(self) -> None:
        """Put all lines on the clipboard as indented text."""
        QGuiApplication.clipboard().setText(trees.to_text(self.tree.nodes))

    def event(self, event) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and _is_copy(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event) -> None:
        if _is_copy(event):
            self.copy()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._follow(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event) -> None:
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Line menu"))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        node = self.tree.node(self.currentIndex())
        if node is not None and node.jump is not None:
            menu.addAction(self.tr("Go there"), lambda: self.followed.emit(node.jump))
        menu.addAction(self.tr("Copy all lines"), self.copy)
        menu.popup(event.globalPos())


class _TallRows(QStyledItemDelegate):
    """Lines as high as a table's, less two pixels."""

    def sizeHint(self, option, index) -> QSize:
        hint = super().sizeHint(option, index)
        return QSize(hint.width(), max(hint.height(), theme.row_height() - 2))


def _names(nodes, depth: int = 1):
    for node in nodes:
        yield node.name, depth
        yield from _names(node.children, depth + 1)


def copy_text(text: str) -> None:
    """Put text on the clipboard."""
    QApplication.clipboard().setText(text)
