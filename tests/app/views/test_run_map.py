"""The run map: pixels of every kind, pointer, keys, selection, and one paint an update."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QWheelEvent
from PySide6.QtWidgets import QApplication

from app import theme
from app.models import sequences as model
from app.models.foreign import track_of_ranges
from app.models.sequences import Kind, Refusal
from app.views.run_detail import RunDetail
from app.views.run_paint import TICK_LANE
from app.views.run_panel import RunPanel
from tests.app import values
from tests.app.pixels import grab, is_mostly, share
from tests.app.views.detail import middle

BODY = 60


def lane(detail: RunDetail, position: int, low: int = 40, high: int = 120) -> np.ndarray:
    """Pixels of the body lane over the middle half of a position."""
    left, right = detail.axis.to_pixel(position + 0.3), detail.axis.to_pixel(position + 0.7)
    return grab(detail)[low:high, int(left) : max(int(left) + 1, int(right))]


@pytest.mark.parametrize("scheme", ["light", "dark", "contrast"])
def test_every_kind_has_its_colour(qapp, detail: RunDetail, scheme: str) -> None:
    theme.apply(qapp, scheme)
    track = track_of_ranges(0, [(8, 17), (18, 26)], [(4, 8)])
    detail.set_track(track)
    detail.fit_all()
    assert is_mostly(lane(detail, 9), "group_a")
    assert is_mostly(lane(detail, 13), "group_b")
    assert is_mostly(lane(detail, 24), "tail")
    assert share(lane(detail, 5), "evicted") > 0.5
    assert share(lane(detail, 1), "padding") > 0.5
    assert share(lane(detail, 16), "forgotten") > 0.5
    hole = grab(detail)[:, int(detail.axis.to_pixel(17)) : int(detail.axis.to_pixel(18))]
    assert share(hole[3 : TICK_LANE - 1], "hole") > 0.8
    assert 0.05 < share(hole[20:130], "hole") < 0.6
    assert share(hole[20:130], "base") > 0.3


def test_the_tail_is_outlined_box_by_box(detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 11)))
    detail.fit_all()
    row = grab(detail)[BODY, :]
    ink = theme.rgb("text") & 0xFFFFFF
    edges = np.flatnonzero(row == ink)
    for position in (8, 9, 10):
        near = abs(edges - detail.axis.to_pixel(position))
        assert near.min() <= 1.5, position


def test_patterns_tell_evicted_from_padding_without_colour(detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 40, 48, evicted=20, padding=20)))
    detail.fit_all()
    evicted = grab(detail)[40:120, middle(detail, 25) : middle(detail, 35)]
    padding = grab(detail)[40:120, middle(detail, 5) : middle(detail, 15)]
    fill, dots = theme.rgb("evicted") & 0xFFFFFF, theme.rgb("padding") & 0xFFFFFF
    hatched = (evicted != fill).mean(axis=1)
    assert hatched.min() > 0, "diagonal lines cross every row"
    assert 0.05 < (evicted != fill).mean() < 0.5
    assert 0.02 < (padding != dots).mean() < 0.5
    assert (padding != dots).mean(axis=1).min() == 0, "dots leave rows free"


def test_the_private_ghost_is_dashed_and_behind_the_frontier(detail: RunDetail) -> None:
    run = values.sequence(0, 0, 8)
    detail.set_track(model.track_of(run, values.opened(0, 8, 13, 8)))
    detail.fit_all()
    picture = grab(detail)
    left, right = int(detail.axis.to_pixel(8)), int(detail.axis.to_pixel(13))
    edge = picture[30:130, left - 1 : left + 3]
    drawn = np.any(edge == (theme.rgb("private") & 0xFFFFFF), axis=1)
    assert 0.3 < share(picture[30:130, right - 3 : right], "private") < 1
    assert drawn.any()
    assert share(picture[40:120, :left], "private") == 0


def test_frontier_stands_behind_the_last_live_position(detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 12)))
    detail.fit_all()
    x = round(detail.axis.to_pixel(12))
    column = grab(detail)[20:130, x - 1 : x + 1]
    assert share(column, "text") > 0.9


def test_a_refused_hole_is_drawn_where_it_would_have_been(detail: RunDetail) -> None:
    refusal = Refusal(((8, 10), (11, 12)), "refused")
    detail.set_track(model.track_of(values.sequence(0, 0, 8), None, refusal))
    detail.fit_all()
    ticks = grab(detail)[3 : TICK_LANE - 1, middle(detail, 10) - 2 : middle(detail, 10) + 2]
    assert share(ticks, "hole") == 1
    assert "hole" in detail.plain_words(10)


def test_one_hole_in_a_million_positions_is_seen(detail: RunDetail) -> None:
    detail.set_track(track_of_ranges(0, [(0, 600_001), (600_002, 1_000_000)]))
    detail.fit_all()
    ticks = grab(detail)[4, :] == (theme.rgb("hole") & 0xFFFFFF)
    assert 2 <= np.count_nonzero(ticks) <= 3
    assert abs(np.flatnonzero(ticks)[0] - detail.axis.to_pixel(600_001)) <= 2


def test_an_update_is_one_paint(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 1_000_000)))
    qtbot.wait(20)
    before = detail.n_paints
    for _ in range(5):
        detail.pan(0.1)
    qtbot.wait(50)
    assert detail.n_paints == before + 1


def test_a_click_selects_the_position_under_it(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 100, 140)))
    detail.fit_all()
    with qtbot.waitSignal(detail.picked) as signal:
        qtbot.mouseClick(detail, Qt.MouseButton.LeftButton, pos=QPoint(middle(detail, 117), BODY))
    assert signal.args == [117, 118]
    row = grab(detail)[int(detail.body.bottom()) + 1, :]
    chosen = np.flatnonzero(row[2:-2] == theme.rgb("accent") & 0xFFFFFF) + 2
    assert chosen.min() >= detail.axis.to_pixel(117) - 1
    assert chosen.max() <= detail.axis.to_pixel(118) + 1


def test_shift_drag_selects_a_range_and_drag_pans(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 400)))
    detail.show_range(100, 150)
    shift = Qt.KeyboardModifier.ShiftModifier
    start, end = QPoint(middle(detail, 110), BODY), QPoint(middle(detail, 121), BODY)
    qtbot.mousePress(detail, Qt.MouseButton.LeftButton, shift, start)
    qtbot.mouseMove(detail, end)
    qtbot.mouseRelease(detail, Qt.MouseButton.LeftButton, shift, end)
    assert detail._selected == (110, 122)
    x0 = detail.axis.x0
    qtbot.mousePress(detail, Qt.MouseButton.LeftButton, pos=QPoint(400, BODY))
    qtbot.mouseMove(detail, QPoint(300, BODY))
    qtbot.mouseRelease(detail, Qt.MouseButton.LeftButton, pos=QPoint(300, BODY))
    assert detail.axis.x0 == pytest.approx(x0 + 100 / detail.axis.per_position, abs=0.5)


KEYS = [
    (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 21),
    (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, 19),
    (Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier, 24),
    (Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier, 16),
    (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, 0),
    (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, 41),
]


@pytest.mark.parametrize(("key", "modifier", "target"), KEYS)
def test_keys_move_the_selection(qtbot, detail: RunDetail, key, modifier, target) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 42)))
    detail.select_position(20)
    qtbot.keyClick(detail, key, modifier)
    assert detail._selected == (target, target + 1)
    qtbot.keyClick(detail, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    low = max(0, target - 1)
    assert detail._selected == (low, target + 1)


def test_the_first_key_press_takes_an_end_of_the_run(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 5, 42)))
    qtbot.keyClick(detail, Qt.Key.Key_Left)
    assert detail._selected == (41, 42)


def test_page_keys_move_by_a_screen(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 1000)))
    detail.show_range(0, 100)
    detail.select_position(10)
    screen = int(detail.axis.span)
    qtbot.keyClick(detail, Qt.Key.Key_PageDown)
    assert detail._selected == (10 + screen, 11 + screen)
    assert detail.axis.x0 <= 10 + screen < detail.axis.x1


def test_ctrl_wheel_zooms_at_the_pointer_and_wheel_pans(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 1000)))
    detail.show_range(400, 500)
    under = detail.axis.x0 + 200 / detail.axis.per_position

    def wheel(modifier: Qt.KeyboardModifier) -> None:
        event = QWheelEvent(
            QPointF(200, BODY),
            QPointF(detail.mapToGlobal(QPoint(200, BODY))),
            QPoint(),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            modifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(detail, event)

    per = detail.axis.per_position
    wheel(Qt.KeyboardModifier.ControlModifier)
    assert detail.axis.per_position > per
    assert detail.axis.x0 + 200 / detail.axis.per_position == pytest.approx(under)
    x0 = detail.axis.x0
    wheel(Qt.KeyboardModifier.NoModifier)
    assert detail.axis.x0 < x0


def test_double_click_fits_the_group(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 400)))
    detail.show_range(100, 200)
    qtbot.mouseDClick(detail, Qt.MouseButton.LeftButton, pos=QPoint(middle(detail, 150), BODY))
    assert detail.axis.x0 <= 148 < 152 <= detail.axis.x1
    assert detail.axis.span < 20


def test_following_keeps_the_frontier_in_view_until_one_moves(detail: RunDetail) -> None:
    for stop in (100, 150, 1000):
        detail.set_track(model.track_of(values.sequence(0, 0, stop)))
        assert detail.axis.x0 <= stop - 1 < detail.axis.x1
    detail.pan(-2)
    x0 = detail.axis.x0
    detail.set_track(model.track_of(values.sequence(0, 0, 1100)))
    assert detail.axis.x0 == x0
    detail.follow_frontier()
    assert detail.axis.x1 > 1099


def test_a_filter_fades_all_other_kinds(detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 27)))
    detail.fit_all()
    detail.set_filter(Kind.TAIL)
    assert is_mostly(lane(detail, 25), "tail")
    assert share(lane(detail, 2), "group_a") == 0
    detail.set_filter(None)
    assert is_mostly(lane(detail, 2), "group_a")


def test_an_empty_run_says_so(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 0)))
    picture = grab(detail)
    assert len(np.unique(picture[30:130])) > 2, "words are drawn"
    qtbot.keyClick(detail, Qt.Key.Key_Right)
    assert detail.accessible_value()


def test_words_under_the_pointer_count_kinds_where_a_column_holds_many(detail: RunDetail) -> None:
    detail.set_track(track_of_ranges(0, [(0, 600_001), (600_002, 1_000_000)]))
    detail.fit_all()
    words = detail.pointer_words(detail.axis.to_pixel(600_001))
    assert ": 1 hole, " in words
    assert words.startswith("positions 60")


def test_screen_readers_get_name_role_and_value(detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 42)))
    detail.select_position(41)
    interface = QAccessible.queryAccessibleInterface(detail)
    assert interface.role() == QAccessible.Role.Chart
    assert interface.text(QAccessible.Text.Name) == "Run detail"
    assert interface.text(QAccessible.Text.Value) == "position 41, raw tail"


def test_a_palette_change_repaints(qtbot, qapp, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 40)))
    qtbot.wait(20)
    before = detail.n_paints
    theme.apply(qapp, "dark")
    qtbot.wait(50)
    assert detail.n_paints > before
    assert is_mostly(lane(detail, 33), "group_a")


def test_the_flip_flashes_only_where_motion_is_wanted(qtbot, detail: RunDetail) -> None:
    detail.set_track(model.track_of(values.sequence(0, 0, 40)))
    detail.set_track(model.track_of(values.sequence(0, 0, 45)))
    assert detail._flash is None
    theme.set_reduced_motion(False)
    detail.set_track(model.track_of(values.sequence(0, 0, 50)))
    assert detail._flash in ((45, 50), None)
    qtbot.waitUntil(lambda: detail._flash is None)


# panel ---------------------------------------------------------------------------


def test_panel_shows_counts_and_one_selection(qtbot, desk) -> None:
    panel = desk.open(RunPanel)
    view = values.sequence(0, 40, 142, ((0, 60), (100, 42)), evicted=34, padding=6)
    desk.client.receive(0, values.snapshot(view))
    desk.client.deliver_now()
    assert panel.summary.text() == "102 positions · 25 groups · tail 2 · evicted 34 · padding 6"
    assert panel.legend.chips[Kind.TAIL].text() == "tail 2"
    assert panel.go_to(105)
    selection = desk.hub.selection
    assert (selection.start, selection.group, selection.cell) == (105, 16, 105)
    assert not panel.go_to(5000)
    assert panel.go_to_group(0)
    assert (desk.hub.selection.start, desk.hub.selection.stop) == (40, 44)
    assert not panel.go_to_group(25)


def test_panel_shows_the_past_and_comes_back(qtbot, desk) -> None:
    panel = desk.open(RunPanel)
    early, late = values.sequence(0, 0, 8), values.sequence(0, 0, 30)
    first = values.record(1, early)
    desk.client.receive(0, first)
    desk.client.receive(0, values.snapshot(late))
    desk.client.deliver_now()
    assert panel.track.n_live == 30
    desk.client.show(first)
    assert panel.track.n_live == 8
    desk.client.receive(0, values.snapshot(values.sequence(0, 0, 31), number=3))
    desk.client.deliver_now()
    assert panel.track.n_live == 8
    desk.client.show(None)
    assert panel.track.n_live == 31


def test_panel_shows_a_refused_hole_in_words_and_finds_it(qtbot, desk) -> None:
    panel = desk.open(RunPanel)
    run = values.sequence(0, 0, 8)
    desk.client.receive(0, values.snapshot(run))
    desk.client.receive(0, values.refused(1, [8, 9, 11], 10, 11, run))
    desk.client.deliver_now()
    assert panel.refused.isVisible()
    assert "expected 10, given 11" in panel.refused.words.text()
    assert panel.go_to_hole(1)
    assert (desk.hub.selection.start, desk.hub.selection.stop) == (10, 11)


def test_panel_chooses_between_sequences(qtbot, desk) -> None:
    panel = desk.open(RunPanel)
    desk.client.receive(0, values.snapshot(values.sequence(0, 0, 8), values.sequence(4, 0, 20)))
    desk.client.deliver_now()
    assert panel.sequence.isVisible()
    panel.sequence.activated.emit(1)
    assert desk.hub.selection.seq == 4
    assert panel.detail.track.n_live == 20
    desk.hub.change(None, seq=0)
    assert panel.detail.track.n_live == 8


def test_words_name_cell_token_and_chunk(qtbot, desk) -> None:
    panel = desk.open(RunPanel)
    run = values.sequence(0, 0, 4)
    op = {"op": "append", "seq": 0, "positions": [0, 1, 2, 3], "tokens": [9, 8, 7, 6]}
    desk.client.receive(0, values.record(5, run, op=op, positions_written=(0, 4)))
    desk.client.receive(0, values.snapshot(run))
    desk.client.deliver_now()
    assert panel.words_at(2) == (
        "position 2, complete group, group 0, cell 2, token 7, written by event 5"
    )


def test_legend_filters_to_one_kind_at_a_time(qtbot, desk) -> None:
    panel = desk.open(RunPanel)
    desk.client.receive(0, values.snapshot(values.sequence(0, 0, 11)))
    desk.client.deliver_now()
    legend = panel.legend
    qtbot.mouseClick(legend.chips[Kind.TAIL], Qt.MouseButton.LeftButton)
    assert panel.detail.only is Kind.TAIL
    qtbot.mouseClick(legend.chips[Kind.HOLE], Qt.MouseButton.LeftButton)
    assert panel.detail.only is Kind.HOLE
    assert legend.clear.isVisible()
    qtbot.mouseClick(legend.clear, Qt.MouseButton.LeftButton)
    assert panel.detail.only is None
    assert not legend.clear.isVisible()
