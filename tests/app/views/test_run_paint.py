"""How forgotten positions are painted and told: they are live, and attention does not see them."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app import theme
from app.models.foreign import track_of_ranges
from app.models.selection import Selection
from app.models.sequences import Kind
from app.views.run_detail import RunDetail
from app.views.run_paint import TICK_LANE
from app.views.run_panel import RunPanel
from tests.app.pixels import grab, share
from tests.app.views.detail import middle


def lane(detail: RunDetail, position: int) -> np.ndarray:
    """Pixels of the body lane over the middle part of a position."""
    left, right = detail.axis.to_pixel(position + 0.3), detail.axis.to_pixel(position + 0.7)
    return grab(detail)[30:60, int(left) : max(int(left) + 1, int(right))]


@pytest.mark.parametrize("scheme", ["light", "dark", "contrast"])
def test_forgotten_positions_have_a_lattice_and_a_tick(qapp, detail, scheme: str) -> None:
    theme.apply(qapp, scheme)
    detail.set_track(track_of_ranges(0, [(0, 27), (36, 72)]))
    detail.fit_all()
    picture = grab(detail)
    left, right = int(detail.axis.to_pixel(24)) + 1, int(detail.axis.to_pixel(27)) - 1
    lost, fill = picture[40:120, left:right], theme.rgb("forgotten") & 0xFFFFFF
    assert 0.1 < (lost != fill).mean() < 0.6
    assert (lost != fill).mean(axis=1).min() > 0, "lines cross every row"
    falling = [(lost[n, n : n + 8] != fill).any() for n in range(8)]
    rising = [(lost[7 - n, n : n + 8] != fill).any() for n in range(8)]
    assert all(falling)
    assert all(rising)
    assert share(picture[3 : TICK_LANE - 1, left:right], "forgotten") == 1


def test_forgotten_positions_say_so_in_words(detail: RunDetail) -> None:
    detail.set_track(track_of_ranges(0, [(0, 11), (15, 30)], label="sequence 0"))
    detail.fit_all()
    detail.select_position(9)
    assert detail.accessible_value() == "position 9, forgotten, broken group 2"
    assert detail.pointer_words(middle(detail, 15)) == "position 15, forgotten, broken group 3"
    detail.select_position(11, extend=True)
    assert detail.as_text().splitlines() == [
        "sequence 0: 26 positions · 5 of 7 groups whole · tail 2 · holes 4 · forgotten 4",
        "positions 9 to 10: forgotten",
        "position 11: hole",
    ]


def test_panel_counts_forgotten_positions_of_another_engine_apart(qtbot, desk) -> None:
    panel = desk.open(RunPanel)
    panel.show_foreign((track_of_ranges(0, [(0, 11), (15, 30)]),))
    chips = panel.legend.chips
    assert chips[Kind.GROUP_A].text() == "groups 20"
    assert chips[Kind.FORGOTTEN].text() == "forgotten 4"
    assert "neither a complete group nor the tail" in chips[Kind.FORGOTTEN].toolTip()
    assert panel.summary.text().endswith("tail 2 · holes 4 · forgotten 4")
    qtbot.mouseClick(chips[Kind.FORGOTTEN], Qt.MouseButton.LeftButton)
    panel.detail.fit_all()
    assert panel.go_to(9)
    assert desk.hub.selection.group is None, "it is in no complete group"
    assert panel.go_to(17)
    assert desk.hub.selection.group == 4
    panel.hub.select(Selection())
    assert share(lane(panel.detail, 9), "forgotten") > 0.5
    assert share(lane(panel.detail, 1), "group_a") == 0
    first = panel.overview.pointer_words(panel.overview.axis().to_pixel(8.5), 20)
    assert first == "sequence 0, position 8: 1 forgotten"
