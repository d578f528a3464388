"""What a person may tell the readers beside the file."""

from __future__ import annotations

from dataclasses import dataclass

from engine.terms import GROUP_SIZE


@dataclass(frozen=True, slots=True)
class Options:
    """Choices for reading; the defaults need no knowledge of the file."""

    group_size: int = GROUP_SIZE
    architecture: str | None = None
    """llama.cpp architecture for files that do not name one."""
    rows: bool = True
    """Scan payload rows where a format's verdict needs them."""
    payload: bool = False
    """Look at the payload of llama.cpp files, too: values that are not finite."""
    last_copy_only: bool = False
    """kv-events: the engine reports a removal only for the last copy of a block."""
