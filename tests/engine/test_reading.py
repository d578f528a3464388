"""Arrays for panels: the bytes of the bank, by live position, or a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from engine.commands import ReadArray
from engine.engine import append
from engine.errors import Unreadable
from engine.faults import Fault
from engine.ops import EvictFront, Fork
from engine.owners.fixed import FixedOwner
from engine.owners.positional import PositionalOwner
from engine.reading import MAX_ROWS, arrays_of, read_array
from engine.terms import FailKind
from tests.helpers.engines import good, prompt, public, session


def test_everything_that_is_told_can_be_read_and_has_the_bytes_of_the_bank() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 30, prompt(n=22)))
    good(engine, EvictFront(0, 3))
    good(engine, Fork(0, 1))
    good(engine, append(1, 52, [1, 2, 3]))
    bytes_of, bank = public(engine), engine.pair.public_bank
    told = arrays_of(bank)
    assert len(told) == len(set(told)) > 10
    for owner, layer, part in told:
        for seq in (0, 1):
            found = read_array(engine, ReadArray(owner, layer, part, seq))
            held = bank.owners[owner]
            name = f"{owner} {(layer, part)} {seq}"
            if isinstance(held, FixedOwner):
                name = f"{owner} {layer} {seq}"
                assert found.start == 0
            elif held.unit == "position":
                assert found.start == 33
            assert found.values.tobytes() == bytes_of[name], name
            assert not found.values.flags.writeable


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (None, None, (33, 52)),
        (40, 42, (40, 42)),
        (0, 35, (33, 35)),
        (51, 999, (51, 52)),
        (45, 40, (45, 45)),
        (-(2**40), 2**40, (33, 52)),
        (60, 70, (60, 60)),
    ],
)
def test_ranges_are_clipped_to_what_is_live(
    start: int | None, stop: int | None, expected: tuple[int, int]
) -> None:
    engine = session(mode="fast")
    good(engine, append(0, 30, prompt(n=22)))
    good(engine, EvictFront(0, 3))
    whole = read_array(engine, ReadArray("qsa.index", 3, "raw", 0)).values
    found = read_array(engine, ReadArray("qsa.index", 3, "raw", 0, "public", start, stop))
    first, last = expected
    assert len(found.values) == last - first
    if len(found.values):
        assert found.start == first
        assert np.array_equal(found.values, whole[first - 33 : last - 33])
    assert MAX_ROWS >= 4096


def test_the_private_bank_is_read_only_while_it_means_something() -> None:
    engine = session(mode="inspect")
    good(engine, append(0, 0, [1, 2, 3]))
    engine.begin(append(0, 3, [4, 5]))
    while engine.open is not None and engine.open.next_stage != "publish":
        engine.step()
    wanted = ReadArray("qsa.kv", 3, "k", 0, "private")
    private = read_array(engine, wanted)
    assert len(private.values) == 5
    assert len(read_array(engine, ReadArray("qsa.kv", 3, "k", 0)).values) == 3
    assert engine.finish().outcome == "ok"
    assert np.array_equal(read_array(engine, ReadArray("qsa.kv", 3, "k", 0)).values, private.values)
    engine.faults[:] = [Fault("head", FailKind.COMMAND)]
    assert engine.apply(append(0, 5, [6])).outcome == "failed"
    with pytest.raises(Unreadable, match="nothing usable"):
        read_array(engine, wanted)
    engine.mode = "fast"
    engine.begin(append(0, 5, [6]))
    engine.step()
    with pytest.raises(Unreadable, match="not evaluated"):
        read_array(engine, wanted)
    engine.discard()
    good(engine, append(0, 5, [6]))


@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        (ReadArray("nothing", 0, "", 0), "no nothing of layer 0"),
        (ReadArray("qsa.kv", 99, "k", 0), "no qsa.kv of layer 99"),
        (ReadArray("qsa.kv", 3, "", 0), "no qsa.kv of layer 3"),
        (ReadArray("logits", -1, "", 8), "logits of sequence 8 is absent"),
        (ReadArray("logits", -1, "", 0, "third"), "unknown bank"),
    ],
)
def test_what_does_not_exist_is_named(wanted: ReadArray, part: str) -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, [1]))
    with pytest.raises(Unreadable, match=part):
        read_array(engine, wanted)


def test_a_sequence_without_positions_has_no_rows() -> None:
    engine = session(mode="fast")
    assert len(read_array(engine, ReadArray("qsa.kv", 3, "k", 4)).values) == 0


def test_the_rows_are_those_that_the_owner_has() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, prompt(n=9)))
    owner = engine.pair.public_bank.owners["qsa.groups"]
    assert isinstance(owner, PositionalOwner)
    assert len(read_array(engine, ReadArray("qsa.groups", 3, "", 0)).values) == 2
