"""Banks, owners, and parts against the main run."""

from __future__ import annotations

from dataclasses import replace

from app.models import banks
from app.models.state import state_of
from tests.helpers import sessions
from tests.helpers.sessions import UNITS, sequence


def live(*views, **more):
    return state_of(sessions.snapshot(*views, **more), None, 1)


def test_public_card_says_which_bank_is_visible():
    public, private = banks.bank_cards(live(sequence(), version=3))
    assert public.title == "Public bank: bank 1"
    assert "3 flips" in public.detail
    assert private.title == "Private bank: bank 0"
    assert private.detail == "idle, same as public"


def test_private_card_says_what_is_in_flight():
    state = live(sequence(), state="in flight", opened=sessions.open_view(32, 36, 9))
    assert banks.bank_cards(state)[1].detail == ("in flight: append of 32 – 35, next verify")


def test_private_card_says_that_catch_up_is_due():
    _, private = banks.bank_cards(live(sequence(), state="stale"))
    assert private.detail == "idle, catch-up due for 13 owners"


def test_the_past_keeps_public_digests_only():
    past = state_of(sessions.snapshot(sequence()), sessions.record(2, 4, 8), 9)
    table = banks.owner_table(past)
    assert [row.cells[1].copy for row in table.rows] == [d for _, d in sessions.digests(2)]
    assert {row.cells[2].text for row in table.rows} == {"not kept"}


def test_owner_table_has_one_row_an_owner_in_their_order():
    table = banks.owner_table(live(sequence()))
    assert [row.key for row in table.rows] == [name for name, _ in sessions.OWNERS]
    full = sessions.digest("history", 1)
    assert table.rows[0].cells[1].text == f"{full[:4]} {full[4:8]}"
    assert table.rows[0].cells[1].tip == full


def test_an_unsealed_owner_has_no_private_digest():
    table = banks.owner_table(live(sequence(), state="in flight"))
    assert table.rows[0].cells[2].text == "unsealed"
    assert table.rows[0].cells[2].tip == (
        "No digest yet: an owner gets one when it is sealed, just before the flip; "
        "a transaction is writing into the private bank"
    )


def test_every_state_of_an_owner_is_explained_in_cell_and_header():
    for state in banks.STATE_GLYPHS:
        cell = banks.owner_table(live(sequence(), state=state)).rows[0].cells[3]
        assert cell.tip == banks.STATE_TIPS[state]
        assert f"{state}: {cell.tip}" in banks.OWNER_COLUMNS[3].tip
    assert "unsealed" in banks.OWNER_COLUMNS[2].tip


def test_sound_sequence_agrees_everywhere_and_is_usable_whole():
    view = sequence(0, 0, 34)
    marks = [row.cells[-1].text for row in banks.part_table(view, UNITS).rows[3:]]
    assert marks == ["agrees"] * 5
    reach = banks.usable(view, UNITS)
    assert reach.sound
    assert reach.run == (0, 34)


def test_sequence_with_evicted_front_agrees():
    view = sequence(0, 16, 50, evicted=16)
    assert banks.usable(view, UNITS).run == (16, 50)
    rows = banks.part_table(view, UNITS).rows[3:]
    assert {row.cells[-1].text for row in rows} == {"agrees"}


def test_forgotten_positions_are_those_of_missing_groups():
    view = sequence(0, 0, 34, lost_groups=2)
    groups = next(part for part in view.parts if part.owner == "qsa.groups")
    assert banks.forgotten(view, groups) == (24, 32)
    row = next(r for r in banks.part_table(view, UNITS).rows if r.cells[0].text.startswith("qsa.g"))
    assert row.cells[-1].text == "forgets 24 – 31"
    assert row.cells[-1].glyph == "cross"


def test_an_index_behind_is_drift():
    view = sequence(0, 0, 34, behind=3)
    row = next(r for r in banks.part_table(view, UNITS).rows if r.cells[0].text.startswith("qsa.i"))
    assert row.cells[-1].text == "drift: behind by 3"


def test_usable_is_none_where_recurrent_state_is_ahead_of_the_rest():
    reach = banks.usable(sequence(0, 0, 34, behind=3), UNITS)
    assert reach.run is None
    assert "recurrent" in reach.sentence


def test_usable_without_recurrent_state_is_the_shortest_part():
    view = sequence(0, 0, 34, behind=3)
    positional = [part for part in view.parts if not part.owner.startswith("gdn")]
    cut = type(view)(
        *(getattr(view, name) for name in view.__slots__ if name != "parts"), tuple(positional)
    )
    assert banks.usable(cut, UNITS).run == (0, 31)


def test_empty_sequence_is_sound_and_has_nothing():
    reach = banks.usable(sequence(0, 0, 0), UNITS)
    assert reach.run is None
    assert reach.sound


def test_summary_names_owners_bytes_and_saved_slots():
    assert banks.summary(live(sequence())) == "13 owners, 6.4 MiB in both banks; saved: a (0 – 15)"
    past = state_of(sessions.snapshot(sequence()), sessions.record(2, 4, 8), 9)
    assert banks.summary(past) == "13 owners"


def test_bytes_are_of_both_banks():
    state = live(sequence())
    assert banks.total_bytes(state) == 2 * sum(view.n_bytes for view in state.owners)


def test_a_capture_without_bytes_says_none():
    """What a capture does not know is no 0 B."""
    state = live(sequence())
    unknown = tuple(replace(view, n_bytes=0) for view in state.owners)
    known = banks.owner_table(state)
    table = banks.owner_table(replace(state, owners=unknown))
    column = [c.title for c in table.columns].index("Bytes")
    assert {row.cells[column].text for row in table.rows} == {"–"}
    assert "–" not in {row.cells[column].text for row in known.rows}
    assert banks.summary(replace(state, owners=unknown)) == "13 owners; saved: a (0 – 15)"
