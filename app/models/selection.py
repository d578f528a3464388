"""What the user looks at, once for all panels. Plain values, no Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Selection:
    """One selection that every panel shows in its own way; fields that say nothing are None.

    `start` and `stop` are logical positions, half-open; one position p is (p, p + 1).
    """

    seq: int = 0
    start: int | None = None
    stop: int | None = None
    cell: int | None = None
    """Physical cell."""
    group: int | None = None
    """Number of a group of `seq`, counted from its first live position."""
    owner: str | None = None
    layer: int = -1
    """Layer of `owner`; -1 is the whole owner."""
    event: int | None = None
    """Number of a `Record`."""
    stage: str | None = None
    """Name of a transaction stage or a graph stage."""

    @property
    def position(self) -> int | None:
        """The one position selected, or the first of a range."""
        return self.start

    @property
    def n_positions(self) -> int:
        """Positions selected, 0 where none is."""
        if self.start is None or self.stop is None:
            return 0
        return self.stop - self.start

    @property
    def is_empty(self) -> bool:
        """True where nothing but a sequence is chosen."""
        return self == Selection(seq=self.seq)

    def change(self, **fields: Any) -> Selection:
        """The same with some fields changed."""
        return replace(self, **fields)

    def words(self) -> str:
        """One line for the status bar and for screen readers."""
        parts: list[str] = []
        if self.start is not None and self.stop is not None:
            if self.n_positions == 1:
                parts.append(f"position {self.start:,}")
            else:
                parts.append(f"positions {self.start:,} to {self.stop - 1:,}")
        if self.group is not None:
            parts.append(f"group {self.group:,}")
        if self.cell is not None:
            parts.append(f"cell {self.cell:,}")
        if self.owner is not None:
            parts.append(
                f"owner {self.owner}" + (f" layer {self.layer}" if self.layer >= 0 else "")
            )
        if self.stage is not None:
            parts.append(f"stage {self.stage}")
        if self.event is not None:
            parts.append(f"event {self.event:,}")
        return ", ".join(parts) or "nothing selected"


class Trail:
    """Back and forward over past selections, at most `limit` of them."""

    def __init__(self, limit: int = 200) -> None:
        self._items: list[Selection] = [Selection()]
        self._at = 0
        self._limit = limit

    @property
    def current(self) -> Selection:
        """The selection now."""
        return self._items[self._at]

    @property
    def can_go_back(self) -> bool:
        """True where an earlier selection is kept."""
        return self._at > 0

    @property
    def can_go_forward(self) -> bool:
        """True after going back."""
        return self._at + 1 < len(self._items)

    def push(self, selection: Selection) -> bool:
        """Make `selection` the present one and forget what was forward; False: it already is."""
        if selection == self.current:
            return False
        del self._items[self._at + 1 :]
        self._items.append(selection)
        del self._items[: -self._limit]
        self._at = len(self._items) - 1
        return True

    def back(self) -> Selection:
        """The selection before, which becomes the present one."""
        self._at = max(0, self._at - 1)
        return self.current

    def forward(self) -> Selection:
        """The selection after, which becomes the present one."""
        self._at = min(len(self._items) - 1, self._at + 1)
        return self.current
