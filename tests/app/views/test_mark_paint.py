"""Bookmarks over a run: seen in both themes, apart from each other, cheap however many."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from app.models.marks import Mark, Span
from app.models.sequences import track_of
from app.views import mark_paint, run_paint
from app.views.run_detail import RunDetail
from tests.app import values
from tests.app.pixels import grab, share


@pytest.fixture
def detail(qtbot) -> RunDetail:
    detail = RunDetail()
    qtbot.addWidget(detail)
    detail.resize(800, 160)
    detail.set_track(track_of(values.sequence(0, 0, 80)))
    detail.fit_all()
    detail.show()
    return detail


@pytest.fixture
def plates(detail: RunDetail, monkeypatch) -> list:
    """What the last paint drew: (plate, mark)."""
    found: list = []
    draw = mark_paint.draw_marks

    def spy(*args):
        found[:] = draw(*args)
        return found

    monkeypatch.setattr(run_paint, "draw_marks", spy)
    return found


def marks(*starts: int, name: str = "") -> tuple[Mark, ...]:
    return tuple(Mark(Span(0, at, at + 1), n, name) for n, at in enumerate(starts, 1))


def test_a_bookmark_is_seen_at_its_position_in_both_themes(detail, plates, scheme) -> None:
    before = grab(detail)
    detail.set_marks(marks(40))
    after = grab(detail)
    ((plate, _),) = plates
    assert abs(plate.left() - detail.axis.to_pixel(40)) <= 2
    part = np.s_[int(plate.top()) : int(plate.bottom()), int(plate.left()) : int(plate.right())]
    assert share(after[part], "accent") > share(before[part], "accent") + 0.05
    changed = before != after
    assert changed[part].mean() > 0.5
    assert not changed[: int(plate.top()) - 1].any()


def test_a_bookmark_and_a_note_differ_in_shape(detail, plates) -> None:
    pictures = []
    for number in (1, 0):
        detail.set_marks((Mark(Span(0, 40, 41), number, "x" if number == 0 else "", "n"),))
        picture = grab(detail)
        plate = plates[0][0]
        glyph = np.s_[
            int(plate.top()) + 2 : int(plate.bottom()) - 2,
            int(plate.left()) + 2 : int(plate.left()) + 16,
        ]
        pictures.append(picture[glyph])
    assert (pictures[0] != pictures[1]).any()


def test_plates_never_lie_on_each_other(detail, plates) -> None:
    detail.set_marks(marks(*range(0, 80, 2), name="a name that is rather long"))
    detail.grab()
    assert len(plates) > 5
    for (one, _), (other, _) in itertools.pairwise(plates):
        assert one.right() <= other.left()
    assert all(plate.left() >= 0 and plate.right() <= detail.width() for plate, _ in plates)


def test_a_mark_out_of_view_is_not_drawn(detail, plates) -> None:
    detail.show_range(0, 20)
    detail.set_marks(marks(10, 60))
    detail.grab()
    assert [mark.number for _, mark in plates] == [1]


def test_a_range_that_begins_out_of_view_is_drawn_at_the_edge(detail, plates) -> None:
    detail.show_range(20, 40)
    detail.set_marks((Mark(Span(0, 0, 80), 1, "all"),))
    detail.grab()
    ((plate, _),) = plates
    assert 0 <= plate.left() <= 2


def test_what_is_not_drawn_is_still_in_the_words(detail) -> None:
    detail.set_marks(marks(10, 11, 12, name="near"))
    detail.axis.fit(0, 80)
    assert detail.marks_at(11, 12) == "bookmark 2 near"
    assert detail.marks_at(0, 80).count("bookmark") == 3
    assert detail.marks_at(20, 30) == ""


def test_a_thousand_marks_are_one_paint_with_few_plates(detail, plates, qtbot) -> None:
    detail.set_marks(marks(*range(0, 2000, 2)))
    n_paints = detail.n_paints
    qtbot.waitUntil(lambda: detail.n_paints > n_paints)
    assert 0 < len(plates) <= detail.width() / mark_paint.GLYPH
