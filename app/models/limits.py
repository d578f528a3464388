"""How far each op may go from here, and why not further."""

from __future__ import annotations

from app.models import text
from app.models.table import Cell, Column, Jump, Row, Table
from engine.snapshot import LimitView

COLUMNS = (
    Column("Op"),
    Column("Legal", "right", mono=True, tip="From the lowest to the highest legal target"),
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
            Cell(_range(limit), tip=_range(limit, exact=True)),
            Cell(limit.reason if legal else f"not possible: {limit.reason}"),
        )
        rows.append(Row(cells, _jump(seq, limit), limit.op))
    return Table(COLUMNS, tuple(rows))


def _range(limit: LimitView, exact: bool = False) -> str:
    """The legal targets, lowest first; one number where there is only one."""
    ends = sorted({end for end in (limit.nearest, limit.farthest) if end is not None})
    return " – ".join(str(end) if exact else text.count(end) for end in ends) or text.NOTHING


def _jump(seq: int, limit: LimitView) -> Jump:
    """Positions that the limit names, for ops whose target is a position."""
    if limit.op not in ("rewind", "fork", "append at") or limit.farthest is None:
        return Jump(seq=seq)
    position = max(limit.farthest, 0)
    return Jump(seq=seq, positions=(position, position + 1))
