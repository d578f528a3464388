"""Finding commands by a few letters. No Qt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette."""

    id: str
    text: str
    where: str
    """Menu or kind of thing."""
    keys: str = ""
    reason: str = ""
    """Why it can't be used now; empty where it can."""


def score(query: str, text: str) -> int | None:
    """How well a text fits (lower is better); None where the letters are not in it in order."""
    text, at, total = text.lower(), -1, 0
    for letter in query.lower():
        if letter == " ":
            continue
        found = text.find(letter, at + 1)
        if found < 0:
            return None
        at_word = found == 0 or not text[found - 1].isalnum()
        total += 0 if found == at + 1 else (1 if at_word else found - at)
        at = found
    return total


def matches(query: str, entries: Iterable[Entry], limit: int = 60) -> list[Entry]:
    """Entries that fit, the best first; those that can't be used come last."""
    found: list[tuple[bool, bool, int, int, Entry]] = []
    words = query.strip().lower()
    for n, entry in enumerate(entries):
        value = score(words, f"{entry.text} {entry.where}")
        if value is not None:
            found.append((bool(entry.reason), words not in entry.text.lower(), value, n, entry))
    found.sort(key=lambda item: item[:4])
    return [item[4] for item in found[:limit]]
