"""Numbers, digests, sizes and ranges as people read them.

Owns the one way each is written, so that no two panels differ. Plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

NOTHING: Final = "–"
"""Stands where a value is absent; the column or tooltip says what is missing."""


def count(value: int) -> str:
    """A count or position with thousands separators: `1,262`."""
    return f"{value:,}"


def optional(value: int | None) -> str:
    """A count, or the sign for an absent one."""
    return NOTHING if value is None else count(value)


def plural(number: int, word: str, many: str = "") -> str:
    """`1 group`, `2 groups`; `many` is the irregular plural."""
    return f"{count(number)} {word if number == 1 else many or word + 's'}"


def outcomes(found: Iterable[str]) -> str:
    """How ops ended that were not published: `2 refused, 1 failed`, or `none refused`.

    Args:
        found: outcomes of records; a refusal is judged before any stage, a failure in one.
    """
    counts = Counter(found)
    words = {"rejected": "refused", "failed": "failed", "cancelled": "cancelled"}
    told = [f"{count(counts[name])} {word}" for name, word in words.items() if counts[name]]
    return ", ".join(told) or "none refused"


def digest(value: str) -> str:
    """The first eight hex digits in groups of four: `9f2c 41ab`."""
    return f"{value[:4]} {value[4:8]}".strip() if value else NOTHING


def size(n_bytes: int) -> str:
    """Bytes with a binary unit: `512 B`, `4 KiB`, `1.5 MiB`."""
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    digits = 0 if value >= 100 or value == int(value) else 1
    return f"{value:,.{digits}f} {unit}"


def duration(time_ns: int) -> str:
    """A time with a fitting unit: `12 µs`, `0.41 ms`, `38.2 ms`, `1.50 s`."""
    if time_ns <= 0:
        return NOTHING
    if time_ns < 100_000:
        return f"{time_ns / 1e3:.0f} µs" if time_ns >= 10_000 else f"{time_ns / 1e3:.1f} µs"
    if time_ns < 1_000_000_000:
        millis = time_ns / 1e6
        return f"{millis:.2f} ms" if millis < 10 else f"{millis:.1f} ms"
    return f"{time_ns / 1e9:.2f} s"


def span(start: int, stop: int) -> str:
    """A half-open range as first and last: `0 – 31`, `7`, or `none` when it is empty."""
    if stop <= start:
        return "none"
    return count(start) if stop == start + 1 else f"{count(start)} – {count(stop - 1)}"


def inclusive(pair: object) -> str:
    """A JSON range `[first, last]`, or `none` for null."""
    if isinstance(pair, (list, tuple)) and len(pair) == 2:
        return span(int(pair[0]), int(pair[1]) + 1)
    return "none"


def position_tip(value: int | None) -> str:
    """Decimal with hexadecimal, for a tooltip."""
    return "absent" if value is None else f"{value} (0x{value:x})"


def real(value: float) -> str:
    """A tensor value in at most seven significant digits."""
    return f"{value:.6g}"
