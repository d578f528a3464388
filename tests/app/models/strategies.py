"""Random bookmarks and notes for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from app.models import marks as model
from app.models.marks import CellAt, EventAt, Mark, Place, Span

NATURALS = st.integers(0, model.MOST_PLACE)
SPANS = st.tuples(st.integers(-3, 3), st.integers(0, 2**40), st.integers(1, 2**20)).map(
    lambda parts: Span(parts[0], parts[1], parts[1] + parts[2])
)
CHECKS = st.integers(0, 2**64 - 1).map("{:016x}".format)
PLACES: st.SearchStrategy[Place] = st.one_of(
    SPANS, st.builds(CellAt, NATURALS), st.builds(EventAt, NATURALS, CHECKS)
)
NAMES = st.text(max_size=model.LONGEST_NAME).map(model.clean_name)
NOTES = st.text(max_size=200).map(model.clean_note)


@st.composite
def marks(draw: st.DrawFn) -> dict[Place, Mark]:
    """Marks on different places with different numbers, none of them empty."""
    places = draw(st.lists(PLACES, max_size=8, unique=True))
    numbers = draw(st.permutations(range(1, 20)))
    found = {}
    for place, number in zip(places, numbers, strict=False):
        mark = Mark(place, draw(st.sampled_from((0, number))), draw(NAMES), draw(NOTES))
        if not mark.is_empty:
            found[place] = mark
    return found
