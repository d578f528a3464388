"""Errors that the array library hands out later than the evaluation that failed.

This package is also installed without the rest of the project: `engine.late_errors` is the same for
the engine.
"""

from __future__ import annotations

import threading
from typing import Final

import mlx.core as mx

_SEEN = threading.local()
_MOST: Final = 100
"""Rounds after which the errors count as endless: a device that is lost fails for ever."""


def drain() -> None:
    """Let late errors of what has failed surface here, not in the next evaluation.

    MLX 0.32.4 keeps an error of its CPU thread until something else is given to that thread. An
    evaluation that meets it stops half-way, and its arrays can wait for ever; a synchronisation
    that meets it just raises. Two in a row that don't raise: nothing runs, nothing is kept.
    """
    note_streams()
    quiet = 0
    for _ in range(_MOST):
        quiet = quiet + 1 if all(_is_quiet(stream) for stream in _SEEN.streams) else 0
        if quiet == 2:
            return


def note_streams() -> None:
    """Remember the streams that this thread works on now; generation has one of its own."""
    if not hasattr(_SEEN, "streams"):
        _SEEN.streams = []
    for device in (mx.default_device(), mx.Device(mx.cpu)):
        stream = mx.default_stream(device)
        if stream not in _SEEN.streams:
            _SEEN.streams.append(stream)


def _is_quiet(stream: mx.Stream) -> bool:
    try:
        mx.synchronize(stream)
    except Exception:  # it belongs to what has failed already
        return False
    return True
