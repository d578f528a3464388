"""The overview's lanes: their names stand beside them and hide no position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from app import theme
from app.models import sequences as model
from app.views.run_overview import MOST_LABEL, RunOverview
from tests.app import values
from tests.app.pixels import grab, share

SHORT, FAR = values.sequence(0, 0, 8), values.sequence(1, 4000, 4096)


@pytest.fixture(params=[100, 150])
def overview(request, qapp, qtbot) -> RunOverview:
    """One sequence of 8 positions on an axis of 4,096, at two text sizes."""
    theme.set_text_size(qapp, request.param)
    widget = RunOverview()
    qtbot.addWidget(widget)
    widget.set_tracks((model.track_of(SHORT), model.track_of(FAR)), 0)
    widget.resize(800, widget.sizeHint().height())
    widget.show()
    yield widget
    theme.set_text_size(qapp, 100)


def lane(overview: RunOverview, n: int) -> np.ndarray:
    """Pixels of a lane behind the names, without its ticks and the box round what is shown."""
    rect = overview.lane_rect(n, 2)
    rows = grab(overview)[int(rect.top()) + 10 : int(rect.bottom()) - 3]
    return rows[:, overview.gutter :]


def test_overview_stacks_sequences_on_one_axis(qtbot) -> None:
    overview = RunOverview()
    qtbot.addWidget(overview)
    tracks = tuple(model.track_of(values.sequence(s, 10 * s, 100)) for s in range(3))
    overview.set_tracks(tracks, 1)
    overview.resize(600, overview.sizeHint().height())
    overview.show()
    axis = overview.axis()
    assert (axis.lo, axis.hi) == (0, 100)
    heard: list[float] = []
    overview.chosen.connect(heard.append)
    overview.centred.connect(heard.append)
    y = int(overview.lane_rect(2, 3).center().y())
    x = int(axis.to_pixel(50.5))
    qtbot.mouseClick(overview, Qt.MouseButton.LeftButton, pos=QPoint(x, y))
    assert heard == [2, 50.5]
    with qtbot.waitSignal(overview.chosen) as signal:
        qtbot.keyClick(overview, Qt.Key.Key_Up)
    assert signal.args == [0]
    assert "sequence 1" in overview.accessible_value()


@pytest.mark.parametrize("chosen", [0, 1])
def test_a_short_sequence_is_not_hidden_by_its_name(overview: RunOverview, chosen: int) -> None:
    overview.set_tracks(overview.tracks, chosen)
    around = [(2000, 3000), (0, 8)] if chosen == 0 else [(4000, 4096)]
    for box in around:
        overview.set_box(*box)
        assert seen(overview) > 0.9, box


def seen(overview: RunOverview) -> float:
    """Share of the colours of groups where the short sequence is."""
    start = lane(overview, 0)[:, : max(1, int(8 * overview.axis().per_position))]
    return share(start, "group_mix") + share(start, "group_a") + share(start, "group_b")


def test_names_are_told_whole_and_stay_in_their_place(overview: RunOverview) -> None:
    assert [overview.label_of(track) for track in overview.tracks] == ["sequence 0", "sequence 1"]
    assert overview.gutter <= 800 * MOST_LABEL
    y = int(overview.lane_rect(1, 2).center().y())
    assert overview.pointer_words(4, y) == "sequence 1: 96 positions · 24 groups · tail 0"
    assert share(lane(overview, 1)[:, -8:-4], "group_mix") > 0.9, "the axis ends at the right"


def test_a_long_name_is_cut_in_its_middle(overview: RunOverview) -> None:
    names = ("sequence 0", "sequence 0 layer.0.attention to layer.61.attention (31)")
    overview.set_tracks(
        tuple(
            replace(track, label=name) for track, name in zip(overview.tracks, names, strict=True)
        ),
        0,
    )
    assert overview.gutter <= 800 * MOST_LABEL
    assert "…" in overview.label_of(overview.tracks[1])
    y = int(overview.lane_rect(1, 2).center().y())
    assert overview.pointer_words(4, y).startswith(names[1])


def test_a_click_on_a_name_chooses_the_sequence_and_moves_nothing(qtbot, overview) -> None:
    centred: list[float] = []
    overview.centred.connect(centred.append)
    y = int(overview.lane_rect(1, 2).center().y())
    with qtbot.waitSignal(overview.chosen) as signal:
        qtbot.mouseClick(overview, Qt.MouseButton.LeftButton, pos=QPoint(5, y))
    assert signal.args == [1]
    assert not centred


def test_one_sequence_alone_needs_no_name(overview: RunOverview) -> None:
    overview.set_tracks(overview.tracks[:1], 0)
    assert overview.gutter == 0
    assert overview.axis().to_pixel(0) == 0
