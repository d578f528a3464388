"""Slots: named in one owner, kept by the others under the slot's name."""

from __future__ import annotations

from engine.engine import append
from engine.ops import EvictFront, Reset, Restore, Save
from tests.helpers.engines import good, prompt, public, session


def test_a_slot_is_in_the_digest_of_saved_and_of_nothing_else() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, prompt(n=20)))
    before = dict(engine.digests())
    good(engine, Save(0, "a"))
    after = dict(engine.digests())
    assert {name for name in before if before[name] != after[name]} == {"saved"}
    good(engine, append(0, 20, [1]))
    assert dict(engine.digests())["saved"] == after["saved"]
    engine.audit()


def test_names_and_contents_are_told_apart() -> None:
    seen = set()
    for name, n in (("a", 8), ("b", 8), ("a", 9), ("ab", 8)):
        engine = session(mode="fast")
        good(engine, append(0, 0, prompt(n=9)[:n]))
        good(engine, Save(0, name))
        good(engine, Reset(0))
        seen.add(dict(engine.digests())["saved"])
    assert len(seen) == 4


def test_a_slot_outlives_its_sequence_and_is_replaced_by_name() -> None:
    engine = session(mode="fast", audit_each=True)
    good(engine, append(0, 0, prompt(n=20)))
    first = {k: v for k, v in public(engine).items() if k.endswith(" 0")}
    good(engine, Save(0, "a"))
    good(engine, Reset(0))
    good(engine, append(0, 50, [9, 9]))
    good(engine, Restore(3, "a"))
    third = {k.removesuffix("3") + "0": v for k, v in public(engine).items() if k.endswith(" 3")}
    assert third == first
    good(engine, EvictFront(3, 2))
    good(engine, Save(3, "a"))
    good(engine, Restore(0, "a"))
    assert engine.snapshot().sequences[0].start == 2
    assert [(s.name, s.start, s.stop) for s in engine.snapshot().slots] == [("a", 2, 20)]
    engine.audit()


def test_an_empty_sequence_is_no_slot() -> None:
    engine = session(mode="fast")
    before = engine.digests()
    assert engine.apply(Save(0, "empty")).result == "rejected: out-of-range"
    good(engine, append(0, 0, [1, 2]))
    good(engine, EvictFront(0, 2))
    assert engine.apply(Save(0, "empty")).result == "rejected: out-of-range"
    assert engine.snapshot().slots == ()
    assert dict(engine.digests())["saved"] == dict(before)["saved"]
