"""Ctrl-C at every line that runs while an op is executed, one line after the other."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import mlx.core as mx
import pytest

from engine.engine import Engine, append
from engine.ops import EvictFront, Fork, Op, Remove, Reset, Restore, Rewind, Save, Shift
from tests.helpers.engines import batch, good, prompt, public, session

ENGINE = Path(__file__).resolve().parents[2] / "engine"
FILES = {
    str(ENGINE / name)
    for name in ("engine.py", "transaction.py", "work.py", "bank.py", "private.py", "plan.py")
} | {str(file) for file in (ENGINE / "owners").glob("*.py")}
OPS: dict[str, Op] = {
    "append": append(0, 9, [7, 8, 9]),
    "remove": Remove(0),
    "evict": EvictFront(1, 3),
    "rewind": Rewind(0, 5),
    "shift": Shift(1, 2),
    "fork": Fork(0, 2, 6),
    "reset": Reset(1),
    "save": Save(1, "b"),
    "restore": Restore(0, "a"),
    "batch": batch(Save(0, "a"), Reset(0), Fork(1, 0), append(0, 5, [1])),
}


class InterruptAt:
    """Raises KeyboardInterrupt at the n-th executed line of the engine, once."""

    def __init__(self, n: int) -> None:
        self.left, self.where = n, ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        # a generator that is closed by an interrupt can't pass another one on
        if event == "line" and "genexpr" not in frame.f_code.co_name:
            self.left -= 1
            if self.left == 0:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def interrupted(n: int, act: Callable[[], object]) -> str:
    """Run `act` with an interrupt at its n-th line. Returns: where, empty when it ended first."""
    trace, old = InterruptAt(n), sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        assert trace.where
    finally:
        sys.settrace(old)
    return trace.where


def ready(mode: str) -> Engine:
    engine = session(mode=mode, audit_each=True)
    good(engine, append(0, 0, prompt(n=9)))
    good(engine, append(1, 0, prompt(n=5)))
    good(engine, Save(1, "a"))
    return engine


LIVES = [(name, "fast") for name in OPS] + [(name, "inspect") for name in ("append", "batch")]


@pytest.mark.parametrize(("name", "mode"), LIVES)
def test_an_interrupt_at_any_line_publishes_all_or_nothing(
    name: str, mode: str, long_profile: bool
) -> None:
    """And the session goes on: no transaction stays open, both banks can still be made equal."""
    engine = ready(mode)
    good(engine, OPS[name])
    whole = public(engine)
    engine = ready(mode)
    before, bank = public(engine), engine.pair.public
    # in the short profile other lines for each op
    stride = 1 if long_profile else 37
    first = 1 if long_profile else 1 + LIVES.index((name, mode)) * 5 % stride
    tried = 0
    for n in itertools.count(first, stride):
        where = interrupted(n, lambda: engine.apply(OPS[name]))
        assert engine.open is None, where
        if engine.pair.public != bank:
            assert public(engine) == whole, where
            break
        assert public(engine) == before, where
        # the next transaction catches up with whatever the attempt left behind
        engine.begin(Save(0, "c"))
        engine.step()
        engine.discard()
        tried += 1
    assert tried > 5
    engine.audit()
    good(engine, append(3, 0, [1, 2, 3]))
    engine.audit()


def onto_live_cells(mode: str) -> Engine:
    """Compaction will move rows onto cells that are in use; the last two ops differ in sequence."""
    engine = session(mode=mode, prove="failures")
    good(engine, append(1, 0, prompt(n=40)))
    good(engine, append(0, 0, prompt(n=100)))
    good(engine, append(2, 0, prompt(n=9)))
    good(engine, Save(2, "a"))
    good(engine, Reset(1))
    good(engine, EvictFront(0, 3))
    good(engine, append(2, 9, [5, 6]))
    return engine


ACTS: dict[str, Callable[[Engine], object]] = {
    "compact": lambda engine: engine.compact(),
    "undo": lambda engine: engine.undo(),
}


@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("act", ACTS)
def test_what_follows_an_interrupt_is_right(act: str, mode: str, long_profile: bool) -> None:
    """Each time a new session: what the attempt left behind must not reach the next op."""

    def follow(engine: Engine) -> Any:
        engine.audit()
        good(engine, append(3, 0, [1, 2, 3]))
        good(engine, Fork(0, 4))
        engine.audit()
        return public(engine)

    done = onto_live_cells(mode)
    ACTS[act](done)
    whole, then = public(done), follow(done)
    untouched = onto_live_cells(mode)
    before, else_then = public(untouched), follow(untouched)
    stride = 1 if long_profile else 101 if act == "compact" else 211
    for n in itertools.count(1 + (mode == "fast") * stride // 2, stride):
        engine = onto_live_cells(mode)
        bank = engine.pair.public
        where = interrupted(n, lambda engine=engine: ACTS[act](engine))  # type: ignore[misc]
        assert engine.open is None, where
        flipped = engine.pair.public != bank
        assert public(engine) == (whole if flipped else before), where
        assert follow(engine) == (then if flipped else else_then), where
        if not where:
            break
    assert n > 3 * stride


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_compaction_that_stops_between_two_places_is_thrown_away(
    mode: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = onto_live_cells(mode)
    good(expected, append(3, 0, [1, 2, 3]))
    for stop in range(1, 9):
        engine = onto_live_cells(mode)
        taken, take = itertools.count(1), mx.take

        def failing(*args: Any, taken=taken, stop=stop, take=take, **more: Any) -> mx.array:
            if next(taken) == stop:
                raise error("stopped")
            return take(*args, **more)

        with monkeypatch.context() as patch:
            patch.setattr(mx, "take", failing)
            try:
                assert engine.compact().outcome == "failed"
            except KeyboardInterrupt:
                assert error is KeyboardInterrupt
        good(engine, append(3, 0, [1, 2, 3]))
        assert public(engine) == public(expected), stop
        engine.audit()


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_undo_after_an_interrupted_op_is_whole_or_refused(mode: str, long_profile: bool) -> None:
    """The other bank of a young session was never written to before."""
    empty = public(session(mode=mode))
    for n in itertools.count(1, 1 if long_profile else 29):
        engine = session(mode=mode, prove="failures")
        good(engine, append(0, 0, prompt(n=9)))
        before, bank = public(engine), engine.pair.public
        where = interrupted(n, lambda engine=engine: engine.apply(Save(0, "a")))  # type: ignore[misc]
        if engine.pair.public != bank:
            break
        undone = engine.undo()
        assert public(engine) == (before if isinstance(undone, str) else empty), where
        engine.audit()
    assert n > 5
