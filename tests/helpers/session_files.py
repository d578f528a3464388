"""Saved sessions for tests, and their files taken apart by the definition of the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import load_session
from engine.engine import Engine, append
from engine.errors import Malformed, Unreadable
from engine.ops import EvictFront, Fork, Save, Shift
from tests.helpers.engines import good, prompt, session

TINY = "qwen4exp-tiny"


def full(**settings: Any) -> Engine:
    """A session with evicted and moved positions, a checkpoint, a slot and a fork."""
    engine = session(TINY, mode="fast", **settings)
    good(engine, append(0, 3, prompt(TINY, 66)))
    good(engine, Save(0, "slot"))
    good(engine, EvictFront(0, 3))
    good(engine, Shift(0, 5))
    good(engine, Fork(0, 2))
    good(engine, append(2, 74, [1, 2, 3]))
    return engine


class File:
    """A safetensors file taken apart by its definition: length, JSON, bytes."""

    def __init__(self, data: bytes) -> None:
        n = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + n])
        self.metadata: dict[str, str] = header.pop("__metadata__")
        self.tensors: dict[str, tuple[str, list[int], bytes]] = {
            name: (e["dtype"], e["shape"], data[8 + n :][slice(*e["data_offsets"])])
            for name, e in header.items()
        }

    @property
    def about(self) -> Any:
        return json.loads(self.metadata["bankflip"])

    @about.setter
    def about(self, value: Any) -> None:
        self.metadata["bankflip"] = json.dumps(value)

    def data(self) -> bytes:
        header: dict[str, Any] = {"__metadata__": self.metadata}
        at, parts = 0, []
        for name, (dtype, shape, part) in self.tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(part)]}
            at += len(part)
            parts.append(part)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + b"".join(parts)


def refused(engine: Engine, path: Path) -> str:
    """The sentence of a refusal that left the session as it was and usable."""
    before = engine.digests()
    with pytest.raises((Unreadable, Malformed)) as caught:
        load_session(engine, path)
    assert engine.digests() == before
    assert "\n" not in str(caught.value)
    return str(caught.value)
