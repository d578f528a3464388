"""Errors that the array library hands out later than the evaluation that failed.

`engine.protect`, which may import nothing of the engine, has the same for itself.
"""

from __future__ import annotations

from typing import Final

import mlx.core as mx

MOST: Final = 100
"""Rounds after which the errors count as endless: a device that is lost fails for ever."""


def drain() -> None:
    """Let late errors of what has failed surface here, not in the next evaluation.

    MLX 0.32.4 keeps an error of its CPU thread until something else is given to that thread. An
    evaluation that meets it stops half-way, and its arrays can wait for ever; a synchronisation
    that meets it just raises. Two in a row that don't raise: nothing runs, nothing is kept.
    """
    streams = [mx.default_stream(mx.default_device())]
    if (reads := mx.default_stream(mx.Device(mx.cpu))) not in streams:
        streams.append(reads)
    quiet = 0
    for _ in range(MOST):
        quiet = quiet + 1 if all(_is_quiet(stream) for stream in streams) else 0
        if quiet == 2:
            return


def _is_quiet(stream: mx.Stream) -> bool:
    try:
        mx.synchronize(stream)
    except Exception:  # it belongs to what has failed already
        return False
    return True
