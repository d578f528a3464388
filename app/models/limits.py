"""How far each op may go from here, and why not further."""

from __future__ import annotations

from app.models import text
from app.models.table import Cell, Column, Jump, Row, Table
from engine.snapshot import LimitView

COLUMNS = (
    Column("Op"),
    Column("From", "right", mono=True),
    Column("To", "right", mono=True),
    Column("Why not further"),
)


def limit_table(seq: int, limits: tuple[LimitView, ...]) -> Table:
    """One row an op; an op with no legal target says so."""
    rows = []
    for limit in limits:
        legal = limit.nearest is not None or limit.farthest is not None
        name = Cell(limit.op, role="" if legal else "pending", glyph="tick" if legal else "cross")
        cells = (
            name,
            Cell(text.optional(limit.nearest), tip=text.position_tip(limit.nearest)),
            Cell(text.optional(limit.farthest), tip=text.position_tip(limit.farthest)),
            Cell(limit.reason if legal else f"not possible: {limit.reason}"),
        )
        rows.append(Row(cells, _jump(seq, limit), limit.op))
    return Table(COLUMNS, tuple(rows))


def _jump(seq: int, limit: LimitView) -> Jump:
    """Positions that the limit names, for ops whose target is a position."""
    if limit.op not in ("rewind", "fork", "append at") or limit.farthest is None:
        return Jump(seq=seq)
    position = max(limit.farthest, 0)
    return Jump(seq=seq, positions=(position, position + 1))
