"""Patterns always: every second group is told apart without its colour, in every drawing."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF

from app import theme
from app.models import cells as cell_model
from app.models.sequences import track_of
from app.views import drawing
from app.views.cell_map import CellMap
from app.views.legend import Legend
from app.views.main_window import MainWindow
from app.views.run_detail import RunDetail
from app.views.run_overview import RunOverview
from tests.app import values
from tests.app.pixels import grab

RUN = values.sequence(0, 0, 18)
"""Groups at 0, 4, 8 and 12, and a tail of two."""


@pytest.fixture(params=["light", "dark", "contrast"])
def scheme(request, qapp) -> str:
    theme.apply(qapp, request.param)
    return request.param


def n_colours(pixels: np.ndarray) -> int:
    return len(np.unique(pixels))


def lane(widget, left: float, right: float, top: float, bottom: float) -> np.ndarray:
    """Pixels well inside a rectangle."""
    return grab(widget)[int(top) + 6 : int(bottom) - 2, int(left) + 3 : int(right) - 3]


def detail(qtbot) -> RunDetail:
    widget = RunDetail()
    qtbot.addWidget(widget)
    widget.resize(800, 160)
    widget.show()
    widget.set_track(track_of(RUN))
    widget.fit_all()
    return widget


@pytest.mark.parametrize("on", [False, True])
def test_in_the_run_every_second_group_has_lines(qtbot, scheme: str, on: bool) -> None:
    theme.set_patterns(on)
    widget = detail(qtbot)
    body = widget.body
    groups = []
    for start in (0, 4, 8, 12):
        left, right = widget.axis.to_pixel(start), widget.axis.to_pixel(start + 4)
        low = lane(widget, left, right, body.center().y(), body.bottom())
        groups.append(n_colours(low) > 1)
    lined = on or scheme == "contrast"
    assert groups == [False, lined, False, lined]


@pytest.mark.parametrize("on", [False, True])
def test_the_overview_and_the_legend_show_them_too(qtbot, on: bool) -> None:
    theme.set_patterns(on)
    overview, legend = RunOverview(), Legend()
    for widget in (overview, legend):
        qtbot.addWidget(widget)
    overview.resize(800, 60)
    overview.show()
    overview.set_tracks((track_of(RUN),), 0)
    axis, rect = overview.axis(), overview.lane_rect(0, 1)
    second = lane(overview, axis.to_pixel(4), axis.to_pixel(8), rect.top() + 4, rect.bottom())
    assert (n_colours(second) > 1) is on
    kind = next(iter(legend.chips))
    image = legend.chips[kind].icon().pixmap(16, 12).toImage()
    right = {image.pixel(x, y) for x in range(9, 16) for y in range(12)}
    assert (len(right) > 1) is on


@pytest.mark.parametrize("on", [False, True])
def test_cells_of_every_second_group_have_lines(qtbot, on: bool) -> None:
    theme.set_patterns(on)
    widget = CellMap()
    qtbot.addWidget(widget)
    widget.resize(336, 100)
    widget.show()
    widget.set_grid(cell_model.grid_of((RUN,), 18))
    found = []
    for cell in (0, 4):
        rect: QRectF = widget.cell_rect(cell)
        pixels = grab(widget)[
            int(rect.top()) + 3 : int(rect.bottom()) - 2,
            int(rect.left()) + 3 : int(rect.right()) - 2,
        ]
        found.append(n_colours(pixels) > 1)
    assert 16 <= widget.size_px < 34, "cells with room for lines and none for numbers"
    assert found == [False, on]


def test_narrow_segments_get_their_pattern_only_where_it_is_wanted() -> None:
    assert drawing.patterns_from() == drawing.PATTERNS_FROM
    theme.set_patterns(True)
    assert drawing.patterns_from() == drawing.ALWAYS_FROM < drawing.PATTERNS_FROM


def test_the_command_repaints_what_is_open_and_is_remembered(qtbot, settings) -> None:
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1000, 700)
    window.show()
    window.client.receive(1, values_session())
    window.client.receive(0, values.snapshot(RUN))
    window.client.deliver_now()
    qtbot.wait(50)
    n_paints = window.run_panel.detail.n_paints
    window.actions_["view.patterns"].trigger()
    qtbot.waitUntil(lambda: window.run_panel.detail.n_paints > n_paints)
    assert settings.patterns
    window.actions_["view.patterns"].trigger()
    assert not settings.patterns
    assert not theme.patterns_always()


def values_session():
    from engine.events import SessionOpened

    return SessionOpened("tiny", "cpu", (("reserve", "transaction"),), (("tokens", "token"),), ())
