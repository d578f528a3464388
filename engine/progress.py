"""Progress and cancelling, both plain Python: no Qt, no callbacks into a stage.

`CancelToken` is read between chunks and stages; setting it from any thread is safe. Cancelled
means that the private image was thrown away; it is an outcome, not an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a piece of work has come; sent at 0 and at the end, promises no time."""

    done: int
    total: int
    unit: str
    stage: str = ""


ProgressSink = Callable[[Progress], None]


class CancelToken:
    """A flag that any thread may set and the engine's thread reads between stages."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask the work that reads this token to stop."""
        self._event.set()

    def clear(self) -> None:
        """Make the token usable for the next piece of work."""
        self._event.clear()

    def is_set(self) -> bool:
        """True once `set` was called."""
        return self._event.is_set()
