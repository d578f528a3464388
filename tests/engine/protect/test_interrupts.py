"""Ctrl-C at every line of the wrapper and of the caches, one line after the other."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models import cache as lm

from engine import protect
from engine.protect import faults, lineage, model, transaction, views
from tests.helpers.mlxlm_models import tiny_model

FILES = {
    module.__file__ for module in (model, transaction, lineage, protect.guards, protect.freeze, lm)
}


class InterruptAt:
    """Raises KeyboardInterrupt at the n-th executed line of the watched files, once."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.fired = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.fired = True
                raise KeyboardInterrupt
        return self


def interrupted(n: int, act: Callable[[], object]) -> tuple[bool, BaseException | None]:
    """Run `act` with an interrupt at line n. Returns: whether it fired, and what came out."""
    trace = InterruptAt(n)
    error: BaseException | None = None
    old = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except (KeyboardInterrupt, protect.InjectedFault) as raised:
        error = raised
    finally:
        sys.settrace(old)
    return trace.fired, error


def ready(name: str) -> tuple[Any, protect.TransactionalModel, list[Any]]:
    plain = tiny_model(name)
    call = protect.TransactionalModel(plain)
    cache = protect.make_prompt_cache(call)
    call(mx.array([list(range(1, 20))]), cache=cache)
    return plain, call, cache


@pytest.mark.parametrize("name", ["llama", "gemma3_text", "qwen3_next"])
def test_an_interrupt_at_any_line_of_a_step(name: str, long_profile: bool) -> None:
    plain, call, cache = ready(name)
    before = views.fingerprints(cache)
    step = mx.array([[5]])
    tried = 0
    for n in itertools.count(1, 1 if long_profile else 7):
        fired, error = interrupted(n, lambda: call(step, cache=cache))
        if not fired:
            assert error is None
            break
        assert isinstance(error, KeyboardInterrupt)
        assert views.fingerprints(cache) == before, f"line event {n}"
        assert call.position(cache) == 19
        tried += 1
    assert tried > 50
    clean = protect.make_prompt_cache(plain)
    plain(mx.array([list(range(1, 20))]), cache=clean)
    plain(step, cache=clean)
    assert views.fingerprints(cache) == views.fingerprints(clean)


@pytest.mark.parametrize("name", ["gemma3_text", "qwen3_next"])
def test_an_interrupt_while_a_failed_step_is_taken_back(name: str, long_profile: bool) -> None:
    """Whatever line it hits: at the latest the next call, or `recover`, finds the old state."""
    plain, call, cache = ready(name)
    before = views.fingerprints(cache)
    step = mx.array([[5]])

    def fail() -> None:
        with faults.armed(plain, 3, "exception"):
            call(step, cache=cache)

    tried = 0
    for n in itertools.count(1, 1 if long_profile else 7):
        fired, error = interrupted(n, fail)
        assert error is not None
        call.recover()
        assert views.fingerprints(cache) == before, f"line event {n}"
        assert "update_and_fetch" not in {k for c in cache for k in vars(c)}
        if not fired:
            break
        tried += 1
    assert tried > 50
