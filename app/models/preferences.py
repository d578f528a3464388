"""What the user may choose for good: values with their defaults, limits and words. No Qt.

Owns how a byte budget is read and written, and which backends of a machine can be chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

UNITS: Final = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
LEAST_BUDGET: Final = 1 << 20
SIZE_EXAMPLES: Final = "512 MiB or 8 GiB"

SCHEMES: Final = (
    ("system", "As the system"),
    ("light", "Light"),
    ("dark", "Dark"),
    ("contrast", "High contrast"),
)
MODES: Final = (
    ("inspect", "Inspect: evaluate and time each stage"),
    ("fast", "Fast: one evaluation a chunk"),
)
BACKENDS: Final = (
    ("auto", "Automatic"),
    ("cpu", "CPU"),
    ("metal", "Metal"),
    ("cuda", "CUDA"),
)
MOST_CHUNK: Final = 4096


@dataclass(frozen=True, slots=True)
class Preferences:
    """All choices of the dialog; without arguments the defaults."""

    scheme: str = "system"
    patterns: bool = False
    reduced_motion: bool = False
    text_size: int = 100
    """Percent of the system's size."""
    chunk: int = 5
    backend: str = "auto"
    mode: str = "inspect"
    budget_bytes: int | None = None
    """None: half of the machine's memory."""


def differences(old: Preferences, new: Preferences) -> dict[str, Any]:
    """The fields of `new` that are not as in `old`, by name."""
    names = (field.name for field in fields(Preferences))
    return {name: getattr(new, name) for name in names if getattr(old, name) != getattr(new, name)}


class PreferenceError(ValueError):
    """What was typed is no value for a field; the sentence says what is expected."""


def parse_budget(text: str, most: int) -> int | None:
    """Bytes from what was typed, None from nothing.

    Args: most: bytes of this machine's memory, more than which can't be given away.
    Raises: PreferenceError with one sentence.
    """
    given = text.strip()
    if not given:
        return None
    match = re.fullmatch(r"([0-9][0-9, ]*(?:\.[0-9]+)?) *([a-z]+)", given, re.IGNORECASE)
    unit = UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise PreferenceError(
            f"Byte budget: expected a size such as {SIZE_EXAMPLES}, or nothing, given {given!r}"
        )
    # whole KiB, so that what is shown reads back as the same number
    n_bytes = int(float(match[1].replace(",", "").replace(" ", "")) * unit) // 1024 * 1024
    if not LEAST_BUDGET <= n_bytes <= most:
        raise PreferenceError(
            f"Byte budget: expected {budget_words(LEAST_BUDGET)} to {rounded_words(most)}, "
            f"the memory of this machine, given {given!r}"
        )
    return n_bytes


def budget_words(n_bytes: int | None) -> str:
    """A budget as it is typed, in the largest unit that divides it; empty for None."""
    if n_bytes is None:
        return ""
    for name, unit in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if n_bytes % unit == 0:
            return f"{n_bytes // unit:,} {name}"
    return f"{n_bytes // 1024:,} KiB"


def rounded_words(n_bytes: int) -> str:
    """A size to read, with one digit after the point: `11.8 GiB`; never above the true one."""
    for name, unit in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if n_bytes >= unit:
            tenths = n_bytes * 10 // unit
            return f"{tenths / 10:,.1f} {name}" if tenths % 10 else f"{tenths // 10:,} {name}"
    return budget_words(n_bytes)


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """One backend of the list."""

    name: str
    title: str
    reason: str = ""
    """Why it can't be chosen on this machine; empty where it can."""

    @property
    def words(self) -> str:
        """The title, with the reason where there is one."""
        return f"{self.title} ({self.reason})" if self.reason else self.title


def backend_choices(found: Iterable[tuple[str, bool, str]]) -> tuple[BackendChoice, ...]:
    """All backends, those that this machine lacks with the reason.

    Args: found: (name, present, detail) of what was looked for, best first.
    """
    known = {name: (present, detail) for name, present, detail in found}
    best = next((name for name, (present, _) in known.items() if present), "")
    choices = []
    for name, title in BACKENDS:
        present, detail = known.get(name, (False, "not found"))
        if name == "auto":
            taken = dict(BACKENDS).get(best)
            title, present = f"{title} (here: {taken})" if taken else title, True
        choices.append(BackendChoice(name, title, "" if present else detail))
    return tuple(choices)
