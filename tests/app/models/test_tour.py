"""The tour's steps: what ticks them, what does not, and what helps with the next one."""

from __future__ import annotations

import itertools

import pytest

from app.models import tour
from app.models.foreign import track_of_ranges
from app.models.selection import Selection
from app.models.sequences import track_of
from app.models.tour import STEPS, Progress, Scene, help_with
from engine.commands import ArmFault, ClearFaults
from tests.app import values

NEW = Progress()
RUN = track_of(values.sequence(0, 8, 18, evicted=4, padding=4))
"""Padding 0-3, evicted 4-7, groups 8-15, tail 16-17."""
BROKEN = track_of_ranges(0, [(0, 6), (7, 12)])
"""Position 6 is missing; the tail begins at 8 + 4."""


def selected(start: int, stop: int | None = None, seq: int = 0) -> Selection:
    return Selection(seq=seq, start=start, stop=start + 1 if stop is None else stop)


def test_there_are_five_steps_each_in_one_or_two_sentences() -> None:
    assert len({step.id for step in STEPS}) == len(STEPS) == 5
    for step in STEPS:
        assert 1 <= step.sentence.count(". ") + 1 <= 2, step.id
        assert step.sentence.endswith(".")


@pytest.mark.parametrize("position", [8, 11, 12, 15])
def test_a_position_in_a_group_ticks_the_first_step(position: int) -> None:
    assert tour.after_selection(NEW, selected(position), RUN).done == {"group"}


@pytest.mark.parametrize("position", [0, 3, 4, 7, 16, 17, 18, 99])
def test_padding_evicted_tail_and_outside_are_no_group_and_no_hole(position: int) -> None:
    assert tour.after_selection(NEW, selected(position), RUN) == NEW


def test_only_the_missing_position_is_the_hole() -> None:
    done = [tour.after_selection(NEW, selected(p), BROKEN).done for p in range(12)]
    assert [p for p in range(12) if done[p] == {"hole"}] == [6]


def test_a_selection_in_another_sequence_or_of_no_position_says_nothing() -> None:
    assert tour.after_selection(NEW, selected(9, seq=1), RUN) == NEW
    assert tour.after_selection(NEW, Selection(stage="reserve", event=3), RUN) == NEW
    assert tour.after_selection(NEW, selected(9), None) == NEW


def test_an_event_of_the_past_ticks_and_the_newest_does_not() -> None:
    assert tour.after_shown(NEW, None) == NEW
    assert tour.after_shown(NEW, values.record(1)).done == {"event"}


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_a_failure_ticks_where_it_was_armed(outcome: str) -> None:
    failed = values.record(3, outcome=outcome, stage="verify")
    assert tour.after_record(NEW, failed) == NEW, "a script's own failure"
    armed = tour.after_command(NEW, ArmFault("verify", "nonfinite"))
    assert not armed.done, "arming alone is not the step"
    assert tour.after_record(armed, failed).done == {"failure"}
    assert not tour.after_record(armed, values.record(3, outcome=outcome, stage="index")).done
    assert not tour.after_record(armed, values.record(4, stage="verify")).done
    assert tour.after_command(NEW, ClearFaults()) == NEW


def test_steps_may_be_done_in_any_order_and_stay_done() -> None:
    armed = ArmFault("verify", "oom")
    failed = values.record(3, outcome="failed", stage="verify")
    acts = {
        "group": lambda p: tour.after_selection(p, selected(8), RUN),
        "hole": lambda p: tour.after_selection(p, selected(6), BROKEN),
        "event": lambda p: tour.after_shown(p, values.record(1)),
        "failure": lambda p: tour.after_record(tour.after_command(p, armed), failed),
        "report": tour.after_report,
    }
    assert set(acts) == {step.id for step in STEPS}
    for order in itertools.permutations(acts):
        progress = NEW
        for number, name in enumerate(order, 1):
            progress = acts[name](progress)
            assert progress.done == set(order[:number])
            left = [step.id for step in STEPS if step.id not in progress.done]
            assert (progress.current.id if progress.current else None) == next(iter(left), None)
        assert progress.is_finished


READY = Scene(True, True, True, True, 5, 0, False)


def helps(**fields: object) -> dict[str, tuple[str, str]]:
    """Target and hint of every step in a scene that differs from `READY`."""
    scene = Scene(**{**{n: getattr(READY, n) for n in Scene.__slots__}, **fields})  # type: ignore[arg-type]
    found = {step.id: help_with(step, scene) for step in STEPS}
    return {name: (help.target, help.hint) for name, help in found.items()}


def test_where_all_is_there_each_step_shows_its_own_place_without_a_hint() -> None:
    places = {"group": "group", "hole": "hole", "event": "event", "report": "report"}
    assert helps() == {name: (p, "") for name, p in {**places, "failure": "faults"}.items()}


def test_with_nothing_open_every_step_offers_the_demo() -> None:
    found = helps(is_open=False)
    assert {target for target, _ in found.values()} == {"demo"}
    assert help_with(STEPS[0], Scene()).button == "Play the demo"


def test_what_is_missing_is_named_with_the_way_to_it() -> None:
    target, hint = helps(has_group=False)["group"]
    assert (target, "Ctrl+D" in hint) == ("feed", True)
    target, hint = helps(has_group=False, n_queued=9)["group"]
    assert (target, hint) == ("chunk", "No group is complete yet. Step a chunk (F9).")
    target, hint = helps(has_hole=False)["hole"]
    assert (target, "Ctrl+H" in hint) == ("try_hole", True)
    assert helps(n_events=1, n_queued=9)["event"][0] == "chunk"


def test_an_armed_failure_leads_on_to_the_chunk_that_meets_it() -> None:
    assert helps(is_armed=True)["failure"][0] == "feed"
    target, hint = helps(is_armed=True, n_queued=64)["failure"]
    assert (target, hint) == ("chunk", "A failure is armed. Step a chunk (F9).")


def test_a_recording_can_be_looked_at_but_not_run() -> None:
    found = helps(can_run=False, has_hole=False)
    assert [found[name][0] for name in ("group", "event", "report")] == ["group", "event", "report"]
    assert found["hole"][0] == found["failure"][0] == "demo"
    assert "can't be run" in found["hole"][1]
