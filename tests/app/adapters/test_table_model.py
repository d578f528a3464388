"""The table adapter: Qt's own rules, growing, resetting, roles."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QIcon

from app import theme
from app.adapters.table_model import TableModel
from app.models.banks import owner_table
from app.models.filters import parse
from app.models.journal import Journal, JournalTable
from app.models.spans import SpanTable
from app.models.state import state_of
from app.models.table import Cell, Column, Row, Table
from tests.helpers import sessions

Role = Qt.ItemDataRole
COLUMNS = (Column("Name"), Column("Count", "right", mono=True, tip="How many"))


def table(*names: str) -> Table:
    return Table(COLUMNS, tuple(Row((Cell(n), Cell("1", copy="one")), key=n) for n in names))


@pytest.mark.parametrize(
    "source",
    [
        Table(()),
        Table(COLUMNS),
        table("a"),
        table(*"abcdef"),
        JournalTable(Journal(sessions.journal(40))),
        owner_table(state_of(sessions.snapshot(sessions.sequence()), None, 1)),
        SpanTable(state_of(sessions.snapshot(sessions.sequence(0, 0, 30)), None, 1)),
    ],
    ids=["nothing", "empty", "one", "many", "journal", "owners", "spans"],
)
def test_follows_the_rules_of_qt(qapp, qtmodeltester, source):
    qtmodeltester.check(TableModel(source), force_py=True)


def test_rows_added_at_the_end_are_inserted(qapp, qtbot):
    model = TableModel(table("a"))
    with qtbot.waitSignal(model.rowsInserted) as caught:
        model.set_source(table("a", "b", "c"))
    assert caught.args[1:] == [1, 2]
    assert model.rowCount() == 3


def test_same_rows_only_change(qapp, qtbot):
    model = TableModel(table("a", "b"))
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.dataChanged):
        model.set_source(table("a", "b"))


@pytest.mark.parametrize("other", [table("x", "b"), table("a"), Table((Column("Else"),))])
def test_other_rows_reset(qapp, qtbot, other):
    model = TableModel(table("a", "b"))
    with qtbot.waitSignal(model.modelReset):
        model.set_source(other)
    assert model.rowCount() == other.n_rows


def test_a_journal_that_grows_is_not_read_again(qapp, qtbot):
    records = sessions.journal(10)
    journal = Journal(records)
    model = TableModel(JournalTable(journal))
    records += sessions.journal(12)[10:]
    journal.catch_up()
    with qtbot.assertNotEmitted(model.dataChanged), qtbot.waitSignal(model.rowsInserted):
        model.set_source(JournalTable(journal))
    assert model.rowCount() == 12


def test_a_filter_resets(qapp, qtbot):
    journal = Journal(sessions.journal(30))
    model = TableModel(JournalTable(journal))
    with qtbot.waitSignal(model.modelReset):
        model.set_source(JournalTable(journal, parse("failed")))
    assert model.rowCount() == 3


def test_a_million_rows_are_made_when_they_are_looked_at(qapp):
    looked = []

    class Huge:
        columns = COLUMNS
        n_rows = 1_000_000

        def cell(self, row, column):
            looked.append(row)
            return Cell(str(row))

        def jump(self, row):
            return None

        def key(self, row):
            return str(row)

    model = TableModel(Huge())
    assert model.rowCount() == 1_000_000
    assert looked == []
    assert model.data(model.index(999_999, 0)) == "999999"
    assert looked == [999_999]


def test_roles(qapp):
    theme.apply(qapp, "light")
    cells = (Cell("failed", "why", "failed", "cross", bold=True), Cell("x", role="text2"))
    model = TableModel(Table(COLUMNS, (Row(cells),)))
    one, two = model.index(0, 0), model.index(0, 1)
    assert model.data(one, Role.ToolTipRole) == "why"
    assert model.data(two, Role.ToolTipRole) == "x"
    assert isinstance(model.data(one, Role.DecorationRole), QIcon)
    assert model.data(two, Role.DecorationRole) is None
    assert model.data(one, Role.FontRole).bold()
    assert model.data(two, Role.FontRole).family() == theme.mono().family()
    assert model.data(two, Role.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight


def test_fills_are_never_used_as_text_colours(qapp):
    theme.apply(qapp, "light")
    cells = (Cell("a", role="failed"), Cell("b", role="text2"))
    model = TableModel(Table(COLUMNS, (Row(cells),)))
    assert model.data(model.index(0, 0), Role.ForegroundRole) is None
    assert model.data(model.index(0, 1), Role.ForegroundRole) == QColor(theme.colour("text2"))


def test_screen_readers_get_the_full_value(qapp):
    model = TableModel(table("a"))
    assert model.data(model.index(0, 1), Role.AccessibleTextRole) == "one"
    header = model.headerData(1, Qt.Orientation.Horizontal, Role.AccessibleTextRole)
    assert header == "Count"
    assert model.headerData(1, Qt.Orientation.Horizontal, Role.ToolTipRole) == "How many"
