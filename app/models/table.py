"""A table as a frozen value: what every table panel shows, copies and exports.

Owns cells, rows and their text forms. `TableSource` is all that the Qt adapter asks for, so a
table of a million rows can make its cells when they are looked at.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Jump:
    """Where a row leads: the parts of the common selection that it sets; None leaves one alone."""

    seq: int | None = None
    positions: tuple[int, int] | None = None
    """Half-open range of logical positions."""
    cell: int | None = None
    group: int | None = None
    owner: str | None = None
    event: int | None = None
    stage: str | None = None

    def changes(self) -> dict[str, object]:
        """The set fields by the names of the common selection."""
        names = ("seq", "cell", "group", "owner", "event", "stage")
        out = {name: value for name in names if (value := getattr(self, name)) is not None}
        if self.positions is not None:
            out["start"], out["stop"] = self.positions
        return out


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the text shown, and what comes with it."""

    text: str
    tip: str = ""
    role: str = ""
    """Colour by role name of the theme; empty for the normal text colour."""
    glyph: str = ""
    """Shape drawn before the text, such as tick, cross or bookmark: a name in `app.glyphs`."""
    copy: str = ""
    """Text for the clipboard where it differs, such as a full digest."""
    bold: bool = False

    @property
    def plain(self) -> str:
        """Text for the clipboard and for exports."""
        return self.copy or self.text


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title and how its cells are set."""

    title: str
    align: str = "left"
    mono: bool = False
    tip: str = ""
    width: int = 0
    """Width in characters where it should not follow the content."""


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one row, and where the row leads."""

    cells: tuple[Cell, ...]
    jump: Jump | None = None
    key: str = ""
    """Names the row over updates, so that the chosen one stays chosen."""


class TableSource(Protocol):
    """What an item model asks of a table."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def n_rows(self) -> int: ...

    def cell(self, row: int, column: int) -> Cell: ...

    def jump(self, row: int) -> Jump | None: ...

    def key(self, row: int) -> str: ...


class StableRows:
    """Mark of a source whose rows never change once they are shown (the journal's)."""


@dataclass(frozen=True, slots=True)
class Table:
    """A small table held whole."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = field(default=())

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def cell(self, row: int, column: int) -> Cell:
        return self.rows[row].cells[column]

    def jump(self, row: int) -> Jump | None:
        return self.rows[row].jump

    def key(self, row: int) -> str:
        return self.rows[row].key


def lines(source: TableSource, rows: Iterable[int] | None = None) -> list[list[str]]:
    """The chosen rows (all when None) as clipboard text, without the header."""
    chosen: Iterable[int] = range(source.n_rows) if rows is None else rows
    width = len(source.columns)
    return [[source.cell(row, column).plain for column in range(width)] for row in chosen]


def to_text(source: TableSource, rows: Sequence[int] | None = None) -> str:
    """Tab-separated text with a header line."""
    header = [column.title for column in source.columns]
    return "\n".join("\t".join(cells) for cells in [header, *lines(source, rows)]) + "\n"


def to_csv(source: TableSource, rows: Sequence[int] | None = None) -> str:
    """Comma-separated values with a header line, by RFC 4180."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([column.title for column in source.columns])
    writer.writerows(lines(source, rows))
    return out.getvalue()


def to_json(source: TableSource, rows: Sequence[int] | None = None) -> str:
    """A JSON list with one object a row, keyed by the columns' titles."""
    titles = [column.title for column in source.columns]
    items = [dict(zip(titles, cells, strict=True)) for cells in lines(source, rows)]
    return json.dumps(items, ensure_ascii=False, indent=1)
