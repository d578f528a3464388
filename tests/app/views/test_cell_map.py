"""The cell map: pixels, clicks, keys and the linked selection."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible

from app import theme
from app.models.cells import grid_of
from app.models.sequences import Kind
from app.views.cell_map import CellMap
from app.views.cell_panel import CellPanel
from tests.app import values
from tests.app.pixels import grab, is_mostly, share


@pytest.fixture
def cells(qtbot) -> CellMap:
    widget = CellMap()
    qtbot.addWidget(widget)
    widget.resize(640, 200)
    widget.show()
    return widget


def inside(cells: CellMap, cell: int) -> np.ndarray:
    rect = cells.cell_rect(cell).adjusted(3, 3, -3, -3).toRect()
    return grab(cells)[rect.top() : rect.bottom(), rect.left() : rect.right()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_have_the_colours_of_their_positions(qapp, cells: CellMap, scheme: str) -> None:
    theme.apply(qapp, scheme)
    view = values.sequence(0, 100, 111, ((20, 6), (3, 5)))
    cells.set_grid(grid_of((view,), 64))
    assert is_mostly(inside(cells, 20), "group_a")
    assert is_mostly(inside(cells, 24), "group_b")
    assert is_mostly(inside(cells, 3), "group_b")
    assert is_mostly(inside(cells, 6), "tail")
    assert is_mostly(inside(cells, 40), "line")
    assert share(inside(cells, 40), "text2") > 0, "a stroke tells a free cell without colour"


@pytest.mark.parametrize("scheme", ["light", "dark", "contrast"])
def test_forgotten_cells_have_colour_lattice_and_word(qapp, cells: CellMap, scheme: str) -> None:
    theme.apply(qapp, scheme)
    grid = grid_of((values.sequence(0, 0, 64),), 64)
    grid.codes[8:11] = Kind.FORGOTTEN
    cells.set_grid(grid)
    assert share(inside(cells, 9), "forgotten") > 0.4
    assert share(inside(cells, 9), "forgotten") < 1, "lines tell it without colour"
    assert is_mostly(inside(cells, 16), "group_a")
    assert cells.words(9) == "cell 9, position 9 of sequence 0, forgotten"


def test_click_and_keys_select_cells(qtbot, cells: CellMap) -> None:
    cells.set_grid(grid_of((values.sequence(0, 0, 60),), 64))
    with qtbot.waitSignal(cells.picked) as signal:
        qtbot.mouseClick(
            cells, Qt.MouseButton.LeftButton, pos=cells.cell_rect(21).center().toPoint()
        )
    assert signal.args == [21]
    for key, target in [
        (Qt.Key.Key_Right, 22),
        (Qt.Key.Key_Left, 21),
        (Qt.Key.Key_Down, 21 + cells.columns),
        (Qt.Key.Key_Up, 21),
        (Qt.Key.Key_End, 63),
        (Qt.Key.Key_Home, 0),
    ]:
        with qtbot.waitSignal(cells.picked) as signal:
            qtbot.keyClick(cells, key)
        assert signal.args == [target]
    interface = QAccessible.queryAccessibleInterface(cells)
    assert interface.text(QAccessible.Text.Value) == "cell 0, position 0 of sequence 0"


def test_a_million_cells_scroll_and_still_paint_once(qtbot, cells: CellMap) -> None:
    cells.set_grid(grid_of((values.sequence(0, 0, 1_000_000),), 1_000_000))
    qtbot.wait(20)
    before = cells.n_paints
    cells.select_cell(999_999)
    qtbot.wait(50)
    assert cells.n_paints == before + 1
    row = 999_999 // cells.columns
    assert cells.first_row <= row < cells.first_row + cells.rows_in_view


def test_no_cell_says_so(cells: CellMap) -> None:
    cells.set_grid(grid_of((), 0))
    assert len(np.unique(grab(cells)[60:140])) > 2
    assert cells.cell_at(5, 5) is None


def test_zoom_keeps_columns_a_multiple_of_sixteen(cells: CellMap) -> None:
    cells.set_grid(grid_of((values.sequence(0, 0, 500),), 512))
    for factor in (3, 3, 0.2, 0.2):
        cells.zoom(factor)
        assert cells.columns % 16 == 0
    cells.fit_all()
    assert cells.n_rows <= cells.rows_in_view + 1


def test_panel_links_cells_and_positions(qtbot, desk) -> None:
    panel = desk.open(CellPanel)
    view = values.sequence(0, 100, 111, ((20, 6), (3, 5)))
    desk.client.receive(0, values.snapshot(view, n_cells=64))
    desk.client.deliver_now()
    qtbot.waitUntil(lambda: panel.map.grid is not None)
    assert panel.words.text() == (
        "64 cells allocated · 11 live · 53 free or left over (struck through)"
    )
    panel.map.select_cell(4)
    selection = desk.hub.selection
    assert (selection.cell, selection.start, selection.group) == (4, 107, 1)
    desk.hub.change(None, start=104, stop=108, cell=None)
    assert panel.map._ranges == [(24, 26), (3, 5)]
    assert panel.go_to_cell(40)
    assert desk.hub.selection.start is None
    assert not panel.go_to_cell(64)


def test_hover_tells_the_cell(qtbot, desk) -> None:
    panel = desk.open(CellPanel)
    desk.client.receive(0, values.snapshot(values.sequence(0, 0, 64)))
    desk.client.deliver_now()
    qtbot.waitUntil(lambda: panel.map.grid is not None)
    heard: list[str] = []
    desk.hub.hovered.connect(heard.append)
    place = panel.map.cell_rect(9).center().toPoint()
    qtbot.mouseMove(panel.map, QPoint(1, 1))
    qtbot.mouseMove(panel.map, place)
    assert "cell 9, position 9 of sequence 0" in heard
