"""Text that can always be written: names of files need not be UTF-8."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with what UTF-8 can't write (bytes of a file's name, halves of a pair) spelt out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
