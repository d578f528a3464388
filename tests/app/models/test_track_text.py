"""A run in words."""

from __future__ import annotations

from app.models import track_text
from app.models.foreign import track_of_ranges


def test_text_of_a_range_names_only_what_is_in_it() -> None:
    track = track_of_ranges(0, [(0, 6), (7, 10)], label="sequence 3")
    text = track_text.as_text(track, 4, 8)
    assert text.splitlines()[1:] == [
        "positions 4 to 5: forgotten",
        "position 6: hole",
        "position 7: forgotten",
    ]


def test_the_table_names_the_broken_group_of_what_is_forgotten() -> None:
    track = track_of_ranges(0, [(0, 6), (7, 10)], repeated=[(2, 3)])
    assert track_text.spans(track) == [
        (0, 5, "forgotten", "g0 to g1"),
        (6, 6, "hole", ""),
        (7, 7, "forgotten", "g1"),
        (8, 9, "raw tail", ""),
    ]
    assert track_text.summary(track) == (
        "9 positions · 0 of 2 groups whole · tail 2 · holes 1 · forgotten 7"
    )
