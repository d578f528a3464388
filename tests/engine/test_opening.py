"""Opening a session: names, folders, devices, and what cannot be opened."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest

from engine.engine import append
from engine.errors import Malformed, Unreadable
from engine.opening import BACKENDS, builtin_models, model_folder, open_engine
from tests.helpers import golden
from tests.helpers.engines import good, session

TINY = "qwen4exp-tiny"


def test_the_tiny_model_ships() -> None:
    assert TINY in builtin_models()
    assert (model_folder(TINY) / "config.json").is_file()


def test_a_name_and_its_folder_are_the_same_model() -> None:
    named = open_engine(TINY, backend="cpu", mode="fast")
    by_path = open_engine(str(golden.MODELS[TINY]), backend="cpu", mode="fast")
    expected = session(TINY, mode="fast")
    for engine in (named, by_path, expected):
        good(engine, append(0, 0, [1, 2, 3]))
    assert named.digests() == by_path.digests() == expected.digests()
    assert named.name == TINY
    assert named.snapshot().backend == "cpu"
    assert named.exact == "not checked"


def test_the_self_check_says_whether_bits_are_proved() -> None:
    assert open_engine(TINY, backend="cpu", self_check=True).exact == "proved"


def test_without_a_model_there_is_no_device() -> None:
    engine = open_engine(None, group_size=8, capacity=32)
    assert engine.snapshot().backend == "none"
    assert engine.snapshot().group_size == 8


@pytest.mark.parametrize("backend", [b for b in BACKENDS if b not in ("auto", "cpu")])
def test_a_device_that_is_not_here_is_refused_by_name(backend: str) -> None:
    import metal

    if backend in metal.available():
        assert open_engine(TINY, backend=backend).snapshot().backend == backend
        mx.set_default_device(mx.cpu)
        return
    with pytest.raises(Unreadable, match=r"not on this machine.*cpu.*" + backend):
        open_engine(TINY, backend=backend)


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=TINY):
        open_engine("no-such-model")
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(Unreadable, match="found a file"):
        open_engine(str(file))
    with pytest.raises(Unreadable, match="unknown backend"):
        open_engine(TINY, backend="abacus")
    with pytest.raises((Unreadable, Malformed), match=r"config\.json"):
        open_engine(str(tmp_path))
    with pytest.raises(Malformed, match="group size"):
        open_engine(TINY, backend="cpu", group_size=8)


def test_the_front_door_exports_what_it_promises() -> None:
    import engine

    for name in engine.__all__:
        assert getattr(engine, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        engine.nothing  # noqa: B018
