"""How much memory a device has, and that what a file holds fits into it at all."""

from __future__ import annotations

import os
from typing import Final

import mlx.core as mx

from engine.errors import Unreadable

DEFAULT_SHARE: Final = 2
"""One part in this many of the memory is the default budget."""


def default_budget(device: str = "auto") -> int:
    """Half of the memory that a device has, in bytes; 8 GiB where the system does not say.

    Args:
        device: name of a backend; `auto` is a GPU where there is one.
    """
    total = device_memory(device)
    return total // DEFAULT_SHARE if total > 0 else 8 << 30


def admit_bytes(path: str, what: str, n_bytes: int, device: str) -> None:
    """Refuse arrays of a file before any is read that could never be in memory at once.

    An allocation that is impossible can end the process inside the array library.

    Args:
        what: the arrays in a word, such as `weights`.
        n_bytes: of all of them, as they will be in memory.
        device: as for `default_budget`.
    Raises: Unreadable.
    """
    total = device_memory(device)
    if 0 < total < n_bytes:
        most = f"at most the {total:,} bytes of memory"
        raise Unreadable(path, f"{what} do not fit", most, f"{n_bytes:,}")


def device_memory(device: str) -> int:
    """Bytes of memory that a device has, 0 where the system does not say."""
    return (_gpu_memory() if device != "cpu" else 0) or _machine_memory()


def _machine_memory() -> int:
    """Bytes of the machine's memory, 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def _gpu_memory() -> int:
    """Bytes that the GPU may use, 0 without one: a card's own, or a share of what all use."""
    if not (mx.metal.is_available() or mx.cuda.is_available()):
        return 0
    info = mx.device_info(mx.Device(mx.gpu))
    keys = ("total_memory", "memory_size", "max_recommended_working_set_size")
    known = [value for key in keys if isinstance(value := info.get(key), int) and value > 0]
    return min(known, default=0)
