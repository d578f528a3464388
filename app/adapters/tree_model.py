"""A tuple of `Node` as a Qt tree model with a name and a value column."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app import glyphs, theme
from app.models.tree import Node

Index = QModelIndex | QPersistentModelIndex
Role = Qt.ItemDataRole
HEADERS = ("Property", "Value")
NO_INDEX = QModelIndex()


class _Item:
    """A node with its place, so that an index can find its parent."""

    __slots__ = ("children", "node", "parent", "row")

    def __init__(self, node: Node, parent: _Item | None, row: int) -> None:
        self.node, self.parent, self.row = node, parent, row
        self.children = [_Item(child, self, n) for n, child in enumerate(node.children)]


class TreeModel(QAbstractItemModel):
    """Shows the nodes it was given last."""

    def __init__(self, nodes: tuple[Node, ...] = (), parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.nodes = nodes
        self._root = _Item(Node("", children=nodes), None, 0)

    def set_nodes(self, nodes: tuple[Node, ...]) -> None:
        """Show other nodes; equal ones leave the view alone."""
        if nodes == self.nodes:
            return
        self.beginResetModel()
        self.nodes = nodes
        self._root = _Item(Node("", children=nodes), None, 0)
        self.endResetModel()

    def node(self, index: Index) -> Node | None:
        """The node behind an index."""
        return self._item(index).node if index.isValid() else None

    def _item(self, index: Index) -> _Item:
        if not index.isValid():
            return self._root
        item: _Item = index.internalPointer()
        return item

    # what Qt asks ---------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: Index = NO_INDEX) -> QModelIndex:
        children = self._item(parent).children
        if parent.isValid() and parent.column() != 0:
            return QModelIndex()
        if not (0 <= row < len(children) and 0 <= column < len(HEADERS)):
            return QModelIndex()
        return self.createIndex(row, column, children[row])

    def parent(self, index: Index = NO_INDEX) -> QModelIndex:  # type: ignore[override]
        item = self._item(index)
        if item.parent is None or item.parent.parent is None:
            return QModelIndex()
        return self.createIndex(item.parent.row, 0, item.parent)

    def rowCount(self, parent: Index = NO_INDEX) -> int:
        if parent.isValid() and parent.column() != 0:
            return 0
        return len(self._item(parent).children)

    def columnCount(self, parent: Index = NO_INDEX) -> int:
        return len(HEADERS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Role.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Role.DisplayRole:
            return HEADERS[section]
        return None

    def data(self, index: Index, role: int = Role.DisplayRole) -> Any:
        if not index.isValid():
            return None
        node = self._item(index).node
        if index.column() == 0:
            return _name_data(node, role)
        return _value_data(node, role)


def _name_data(node: Node, role: int) -> Any:
    if role in (Role.DisplayRole, Role.AccessibleTextRole):
        return node.name
    if role == Role.FontRole and node.children:
        return theme.heading()
    return None


def _value_data(node: Node, role: int) -> Any:
    if role == Role.DisplayRole:
        return node.value.text
    if role == Role.AccessibleTextRole:
        return node.value.plain
    if role == Role.ToolTipRole:
        return node.value.tip or node.value.text or None
    if role == Role.ForegroundRole and node.jump is not None:
        return theme.colour("accent")
    if role == Role.DecorationRole and node.jump is not None:
        return glyphs.icon("link", "accent")
    return None
