"""Ctrl+Shift+P: type a few letters, Enter runs the command; what can't run says why."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
)
from PySide6.QtGui import QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.models import palette as model
from app.models.palette import Entry

Index = QModelIndex | QPersistentModelIndex

STEPS = {
    Qt.Key.Key_Up: -1,
    Qt.Key.Key_Down: 1,
    Qt.Key.Key_PageUp: -10,
    Qt.Key.Key_PageDown: 10,
}


class EntryModel(QAbstractListModel):
    """Entries for a list view."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.entries: list[Entry] = []

    def set_entries(self, entries: list[Entry]) -> None:
        """Show other entries."""
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or index.row() >= len(self.entries):
            return None
        entry = self.entries[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return entry.text
        if role == Qt.ItemDataRole.ToolTipRole:
            return entry.reason or None
        if role == Qt.ItemDataRole.AccessibleTextRole:
            parts = [
                entry.text,
                entry.where,
                entry.keys,
                entry.reason and f"not now: {entry.reason}",
            ]
            return ", ".join(part for part in parts if part)
        if role == Qt.ItemDataRole.UserRole:
            return entry
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled


class EntryDelegate(QStyledItemDelegate):
    """Text at the left, menu in the second colour, keys at the right; the reason underneath."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(100, max(28, option.fontMetrics.height() + 10))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry = index.data(Qt.ItemDataRole.UserRole)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        if chosen:
            painter.fillRect(option.rect, theme.colour("accent"))
        first = theme.text_on("accent") if chosen else theme.colour("text")
        second = theme.text_on("accent") if chosen else theme.colour("text2")
        rect = option.rect.adjusted(10, 0, -10, 0)
        middle = Qt.AlignmentFlag.AlignVCenter
        right = entry.keys if not entry.reason else f"not now: {entry.reason}"
        font_metrics = option.fontMetrics
        right_width = min(font_metrics.horizontalAdvance(right) + 8, rect.width() * 6 // 10)
        left_rect = QRect(rect.left(), rect.top(), rect.width() - right_width - 8, rect.height())
        painter.setPen(second if entry.reason else first)
        text = font_metrics.elidedText(entry.text, Qt.TextElideMode.ElideRight, left_rect.width())
        painter.drawText(left_rect, middle, text)
        used = font_metrics.horizontalAdvance(text) + 10
        painter.setPen(second)
        if used + 40 < left_rect.width():
            where = font_metrics.elidedText(
                entry.where, Qt.TextElideMode.ElideRight, left_rect.width() - used
            )
            painter.drawText(left_rect.adjusted(used, 0, 0, 0), middle, where)
        right_rect = QRect(rect.right() - right_width, rect.top(), right_width, rect.height())
        text = font_metrics.elidedText(right, Qt.TextElideMode.ElideRight, right_width)
        painter.drawText(right_rect, middle | Qt.AlignmentFlag.AlignRight, text)
        painter.restore()


class CommandPalette(QDialog):
    """A list that narrows while one types; closes by Escape or a click elsewhere."""

    def __init__(
        self, entries: Callable[[str], list[Entry]], run: Callable[[str], None], parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("palette")
        self.setAccessibleName(self.tr("Command palette"))
        self._entries, self._run = entries, run
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(4)
        self.field = QLineEdit()
        self.field.setAccessibleName(self.tr("Find a command, or type a position, g203, cell 77"))
        self.field.setPlaceholderText(self.field.accessibleName())
        self.field.setMinimumHeight(28)
        self.field.setClearButtonEnabled(True)
        self.model = EntryModel(self)
        self.list = QListView()
        self.list.setAccessibleName(self.tr("Commands"))
        self.list.setModel(self.model)
        self.list.setItemDelegate(EntryDelegate(self.list))
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        layout.addWidget(self.field)
        layout.addWidget(self.list)
        self.field.textChanged.connect(self._narrow)
        self.field.returnPressed.connect(self._run_chosen)
        self.list.clicked.connect(self._run_chosen)
        self.field.installEventFilter(self)

    def open_over(self, window: QWidget) -> None:
        """Show over the middle of a window, with nothing typed."""
        self.field.clear()
        self._narrow("")
        width = min(680, max(320, window.width() - 80))
        self.resize(width, min(440, max(200, window.height() - 120)))
        self.move(window.mapToGlobal(QPoint((window.width() - width) // 2, 56)))
        self.show()
        self.field.setFocus()

    def _narrow(self, text: str) -> None:
        self.model.set_entries(model.matches(text, self._entries(text)))
        if self.model.entries:
            self.list.setCurrentIndex(self.model.index(0))

    def _run_chosen(self, *_args: object) -> None:
        entry = self.list.currentIndex().data(Qt.ItemDataRole.UserRole)
        if entry is None or entry.reason:
            return
        self.close()
        self._run(entry.id)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        step = None
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = STEPS.get(Qt.Key(event.key()))
        if watched is self.field and step is not None:
            row = max(0, min(self.list.currentIndex().row() + step, self.model.rowCount() - 1))
            self.list.setCurrentIndex(self.model.index(row))
            return True
        return super().eventFilter(watched, event)

    def paintEvent(self, event) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("window"))
        painter.setPen(QPen(theme.colour("line"), 1))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()
