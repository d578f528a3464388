"""What the panels of a picture are told; no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.events import Body
from engine.snapshot import Record, Snapshot

if TYPE_CHECKING:
    from engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Scene:
    """A session (or a foreign file) as the engine would tell it to the window."""

    snapshot: Snapshot | None = None
    records: Sequence[Record] = ()
    shown: Record | None = None
    """The record to look at; None is the newest state."""
    events: Sequence[Body] = ()
    """Further events, such as `SessionOpened`, in order."""
    scenario: dict[str, Any] | None = None
    foreign: dict[str, Any] | None = None
    """One object of `check --json`."""
    group_size: int = 4
    """Of the foreign file."""
    engine: Engine | None = None
    """Answers what panels ask of the newest state: arrays and limits."""
