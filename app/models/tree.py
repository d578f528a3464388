"""A tree of properties as a frozen value: what the inspector shows and copies."""

from __future__ import annotations

from dataclasses import dataclass

from app.models.table import Cell, Jump

NO_VALUE = Cell("")


@dataclass(frozen=True, slots=True)
class Node:
    """One line: a property, its value, and the lines below it."""

    name: str
    value: Cell = NO_VALUE
    children: tuple[Node, ...] = ()
    jump: Jump | None = None
    """Where activating the line leads; such a line is drawn as a link."""


def to_text(nodes: tuple[Node, ...], depth: int = 0) -> str:
    """Indented lines `name: value`, two spaces a level."""
    out = []
    for node in nodes:
        value = f": {node.value.plain}" if node.value.plain else ""
        out.append(f"{'  ' * depth}{node.name}{value}\n{to_text(node.children, depth + 1)}")
    return "".join(out)
