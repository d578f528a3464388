"""What a person types into Go to, and into the field for tokens. No Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = {
    "": "position",
    "p": "position",
    "pos": "position",
    "position": "position",
    "g": "group",
    "group": "group",
    "c": "cell",
    "cell": "cell",
    "e": "event",
    "event": "event",
    "s": "sequence",
    "seq": "sequence",
    "sequence": "sequence",
}
EXAMPLES = "812, g203, cell 77, event 12 or seq 1"
_FORM = re.compile(r"([a-z]*)\s*#?\s*([0-9][0-9,_ ]*)")


@dataclass(frozen=True, slots=True)
class Target:
    """A place to go to."""

    kind: str
    number: int


def parse_target(text: str) -> Target | None:
    """A place from what was typed; None where it is not one of `EXAMPLES`."""
    match = _FORM.fullmatch(text.strip().lower())
    if match is None or match[1] not in KINDS:
        return None
    digits = re.sub(r"[,_ ]", "", match[2])
    return Target(KINDS[match[1]], int(digits)) if len(digits) <= 12 else None


FEED_EXAMPLES = "x64 (made-up ids) or ids such as 5, 17, 9"
MOST_FED = 1_000_000


def parse_tokens(text: str) -> tuple[int, ...] | None:
    """Token ids: `x64` makes 64 up, a list names them; None where it is neither."""
    text = text.strip().lower()
    match = re.fullmatch(r"[x×]\s*([0-9]{1,7})|([0-9]{1,7})\s*[x×]", text)
    if match is not None:
        n = int(match[1] or match[2])
        return made_up(n) if 0 < n <= MOST_FED else None
    words = re.split(r"[,;\s]+", text.strip("[] "))
    if not words or not all(re.fullmatch(r"[0-9]{1,9}", word) for word in words):
        return None
    return tuple(int(word) for word in words)


def made_up(n: int, seed: int = 1) -> tuple[int, ...]:
    """Token ids below 251, the same ones every time: any model's vocabulary has them."""
    ids: list[int] = []
    state = seed
    for _ in range(n):
        state = (state * 48271) % 2147483647
        ids.append(state % 251)
    return tuple(ids)
