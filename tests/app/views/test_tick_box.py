"""The check box: seen on its ground in every theme, ticked by the keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from app import theme
from app.views.tick_box import TickBox
from tests.app.pixels import grab


@pytest.mark.parametrize("name", ["light", "dark", "contrast"])
def test_the_edge_stands_out_and_the_tick_shows(qtbot, qapp, name: str) -> None:
    theme.apply(qapp, name)
    box = TickBox("Patterns always")
    qtbot.addWidget(box)
    box.show()
    rect = box.box().toRect()
    empty = grab(box)
    edge = QColor(int(empty[rect.top(), rect.left() + rect.width() // 2]))
    assert theme.contrast(edge, theme.colour("window")) >= 3
    qtbot.keyClick(box, Qt.Key.Key_Space)
    assert box.isChecked()
    inside = (slice(rect.top() + 2, rect.bottom() - 1), slice(rect.left() + 2, rect.right() - 1))
    assert (grab(box)[inside] != empty[inside]).mean() > 0.1
