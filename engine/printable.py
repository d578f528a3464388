"""Text that can always be written: names need not be UTF-8, and may hold commands to a terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text with what UTF-8 can't write (bytes of a file's name, halves of a pair) spelt out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain(text: str) -> str:
    """The text as a terminal shows it and nothing more: ends of lines, escapes, halves of a pair
    and all else that is no visible sign or space spelt out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if _is_plain(sign) else _spelt(sign) for sign in text)


def _is_plain(sign: str) -> bool:
    return sign.isprintable() or unicodedata.category(sign) == "Zs"


def _spelt(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
