"""The tree adapter: Qt's own rules, links, resetting."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QModelIndex, Qt

from app import theme
from app.adapters.tree_model import TreeModel
from app.models.table import Cell, Jump
from app.models.tree import Node

Role = Qt.ItemDataRole
NODES = (
    Node("Position", children=(Node("kind", Cell("tail")), Node("cell", Cell("7")))),
    Node("Why", children=(Node("written by", Cell("event 4"), jump=Jump(event=4)),)),
    Node("alone", Cell("1")),
)


@pytest.mark.parametrize("nodes", [(), NODES[2:], NODES], ids=["nothing", "one", "many"])
def test_follows_the_rules_of_qt(qapp, qtmodeltester, nodes):
    qtmodeltester.check(TreeModel(nodes), force_py=True)


def test_children_know_their_parent(qapp):
    model = TreeModel(NODES)
    why = model.index(1, 0, QModelIndex())
    child = model.index(0, 1, why)
    assert model.parent(child) == why
    assert model.data(child) == "event 4"
    assert model.node(child).jump.event == 4
    assert model.parent(why) == QModelIndex()


def test_links_look_like_links(qapp):
    theme.apply(qapp, "dark")
    model = TreeModel(NODES)
    link = model.index(0, 1, model.index(1, 0, QModelIndex()))
    assert model.data(link, Role.ForegroundRole) == theme.colour("accent")
    assert model.data(link, Role.DecorationRole) is not None
    plain = model.index(0, 1, model.index(0, 0, QModelIndex()))
    assert model.data(plain, Role.ForegroundRole) is None


def test_equal_nodes_leave_the_view_alone(qapp, qtbot):
    model = TreeModel(NODES)
    with qtbot.assertNotEmitted(model.modelReset):
        model.set_nodes(tuple(NODES))
    with qtbot.waitSignal(model.modelReset):
        model.set_nodes(NODES[:1])
    assert model.rowCount() == 1
