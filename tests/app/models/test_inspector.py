"""The inspector's tree for each kind of selection."""

from __future__ import annotations

from app.models.foreign import track_of_ranges
from app.models.inspector import Known, foreign_tree, tree
from app.models.journal import Journal
from app.models.selection import Selection
from app.models.state import state_of
from app.models.table import Jump
from app.models.tree import to_text
from tests.helpers import sessions

RECORDS = sessions.journal(31)


def known(**more):
    views = (sessions.sequence(0, 0, 112),)
    state = state_of(sessions.snapshot(*views, **more), None, 31)
    return Known(state, Journal(RECORDS), sessions.stages("layer.3.qsa.select"))


def values(nodes, title):
    node = next(node for node in nodes if node.name == title)
    return {child.name: child.value.text for child in node.children}


def test_nothing_selected_is_an_empty_tree():
    assert tree(known(), Selection()) == ()


def test_a_position_in_a_group():
    nodes = tree(known(), Selection(start=42, stop=43))
    facts = values(nodes, "Position")
    assert facts["kind"] == "group"
    assert facts["group"] == "g10, positions 40 – 43"
    assert facts["cell"] == "42"
    why = next(node for node in nodes if node.name == "Why").children
    written = next(node for node in why if node.name == "written by")
    assert written.jump.event == 12
    assert written.value.text == "event 12: chunk of 4 tokens, published by flip 12"


def test_a_position_outside_says_what_is_legal():
    nodes = tree(known(), Selection(start=500, stop=501))
    assert values(nodes, "Position")["kind"] == "outside"
    assert "frontier + 1" in values(nodes, "Why")["rule"]


def test_a_range_counts_live_positions():
    nodes = tree(known(), Selection(start=110, stop=120))
    assert values(nodes, "Positions") == {
        "range": "110 – 119",
        "sequence": "0",
        "live": "2 of 10",
    }


def test_a_live_cell_and_a_leftover():
    nodes = tree(known(), Selection(cell=40))
    assert values(nodes, "Cell")["sequence 0"] == "position 40"
    nodes = tree(known(), Selection(cell=5000))
    assert values(nodes, "Cell")["held by"] == "never used"


def test_an_event_shows_the_proof():
    nodes = tree(known(), Selection(event=30))
    facts = values(nodes, "Event")
    assert facts["result"] == "rejected: nonfinite"
    assert facts["stage"] == "layer.3.qsa.select"
    proof = next(node for node in nodes if node.name == "Proof")
    assert proof.value.text == "failed: all 13 owners unchanged, byte for byte"
    assert len(proof.children) == 13


def test_an_event_that_is_not_kept():
    assert values(tree(known(), Selection(event=77)), "Event") == {"event": "77, not kept"}


def test_an_owner_with_layers():
    facts = values(tree(known(version=3), Selection(owner="qsa.kv")), "Owner")
    full = sessions.digest("qsa.kv", 3)
    assert facts["public digest"] == f"{full[:4]} {full[4:8]}"
    assert facts["private state"] == "same"
    assert "layer 3" in facts


def test_a_failed_stage():
    facts = values(tree(known(), Selection(stage="layer.3.qsa.select")), "Stage")
    assert facts["state"] == "failed"
    assert facts["failed with"] == "nonfinite"
    assert values(tree(known(), Selection(stage="nope")), "Stage") == {
        "stage": "nope, not in this plan"
    }


def test_a_forgotten_position_of_another_engine_says_why_and_leads_to_the_hole():
    tracks = (track_of_ranges(0, [(0, 11), (15, 30)]),)
    position, why = foreign_tree(tracks, Selection(seq=0, start=9, stop=10))
    assert to_text((position, why)).splitlines() == [
        "Position",
        "  position: 9",
        "  sequence: 0",
        "  kind: forgotten",
        "  group: g2, positions 8 – 11, broken",
        "Why",
        "  rule: live, but a hole or a repeated position broke its group; attention forgets it",
        "  missing: 11 – 14",
    ]
    assert why.children[1].jump == Jump(seq=0, positions=(11, 15))
    sound = to_text(foreign_tree(tracks, Selection(seq=0, start=17, stop=18)))
    assert "broken" not in sound
    assert "missing" not in sound
    (many,) = foreign_tree(tracks, Selection(seq=0, start=8, stop=13))
    assert to_text((many,)) == "Positions\n  range: 8 – 12\n  hole: 2\n  forgotten: 3\n"
    assert foreign_tree(tracks, Selection(seq=3, start=1, stop=2)) == ()
