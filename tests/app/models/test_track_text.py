"""A run in words."""

from __future__ import annotations

from app.models import sequences as model
from app.models import track_text


def test_text_of_a_range_names_only_what_is_in_it() -> None:
    track = model.track_of_ranges(0, [(0, 6), (7, 10)], label="sequence 3")
    text = track_text.as_text(track, 4, 8)
    assert text.splitlines()[1:] == [
        "positions 4 to 5: complete group",
        "position 6: hole",
        "position 7: complete group",
    ]
