"""Errors that the array library hands out later than the evaluation that failed.

This package is also installed without the rest of the project: `engine.late_errors` is the same for
the engine.
"""

from __future__ import annotations

from typing import Final

import mlx.core as mx

_MOST: Final = 100
"""Rounds after which the errors count as endless: a device that is lost fails for ever."""


def drain() -> None:
    """Let late errors of what has failed surface here, not in the next evaluation.

    MLX 0.32.4 keeps an error of its CPU thread until something else is given to that thread. An
    evaluation that meets it stops half-way, and its arrays can wait for ever; a synchronisation
    that meets it just raises. Two in a row that don't raise: nothing runs, nothing is kept.
    """
    quiet = 0
    for _ in range(_MOST):
        try:
            mx.synchronize()
            quiet += 1
        except Exception:  # it belongs to what has failed already
            quiet = 0
        if quiet == 2:
            return
