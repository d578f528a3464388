"""Tables as text, CSV and JSON, and what a jump changes."""

from __future__ import annotations

import csv
import io
import json

from app.models import table, tree
from app.models.table import Cell, Column, Jump, Row, Table

SMALL = Table(
    (Column("Owner"), Column("Digest")),
    (
        Row((Cell("tokens"), Cell("9f2c 41ab", copy="9f2c41ab00")), key="tokens"),
        Row((Cell('a "b", c'), Cell("x")), key="b"),
    ),
)


def test_copy_takes_the_full_value():
    assert table.to_text(SMALL, [0]) == "Owner\tDigest\ntokens\t9f2c41ab00\n"


def test_csv_is_read_back_by_the_csv_module():
    rows = list(csv.reader(io.StringIO(table.to_csv(SMALL))))
    assert rows == [["Owner", "Digest"], ["tokens", "9f2c41ab00"], ['a "b", c', "x"]]


def test_json_has_one_object_a_row():
    assert json.loads(table.to_json(SMALL, [1])) == [{"Owner": 'a "b", c', "Digest": "x"}]


def test_empty_table_has_a_header_only():
    assert table.to_text(Table((Column("A"),))) == "A\n"


def test_jump_changes_only_what_it_names():
    assert Jump(owner="tokens").changes() == {"owner": "tokens"}
    assert Jump(seq=2, positions=(4, 8)).changes() == {"seq": 2, "start": 4, "stop": 8}


def test_tree_text_is_indented():
    nodes = (tree.Node("Position", children=(tree.Node("kind", Cell("tail")),)),)
    assert tree.to_text(nodes) == "Position\n  kind: tail\n"
