"""The pipeline's layout in words: groups, chips, banner."""

from __future__ import annotations

import pytest

from app.models import stages
from tests.helpers import sessions


def test_groups_are_the_transaction_and_the_layers_in_order():
    value = stages.pipeline(sessions.stages())
    assert [group.title for group in value.groups] == [
        "transaction",
        "embed",
        "layer.0",
        "layer.1",
        "layer.2",
        "layer.3",
        "head",
        "transaction",
    ]
    assert value.names == tuple(name for name, _ in sessions.stage_names())


def test_chips_leave_their_group_out_of_the_label():
    value = stages.pipeline(sessions.stages())
    layer = next(group for group in value.groups if group.title == "layer.3")
    assert [chip.label for chip in layer.chips][:2] == ["mix_in", "qsa.project"]


def test_a_failure_is_square_and_what_follows_is_dashed():
    value = stages.pipeline(sessions.stages("layer.3.qsa.select"), flips=2, txn=3)
    chips = [chip for group in value.groups for chip in group.chips]
    at = [chip.name for chip in chips].index("layer.3.qsa.select")
    assert chips[at].square
    assert chips[at].glyph == "cross"
    assert chips[at].second == "failed: nonfinite"
    assert all(chip.dashed and chip.second == "not reached" for chip in chips[at + 1 :])
    assert not any(chip.dashed for chip in chips[:at])
    assert value.banner == (
        "transaction 3 failed at layer.3.qsa.select (nonfinite): public bank unchanged"
    )
    assert value.failed == "layer.3.qsa.select"


def test_banner_of_a_published_transaction_counts_flips():
    value = stages.pipeline(sessions.stages(), flips=7, txn=9)
    assert value.banner.startswith("transaction 9 published in ")
    assert value.banner.endswith("7 flips so far")


def test_banner_of_an_open_transaction_names_the_next_stage():
    value = stages.pipeline(sessions.stages(done=3), txn=4)
    assert value.banner == (
        "transaction 4 in flight: 3 of 30 stages done, next embed; private bank only"
    )
    assert value.running == "embed"


def test_no_stages_says_so():
    assert stages.pipeline(()).banner == "no transaction yet"


def test_armed_faults_of_now_are_shown_on_the_last_plan():
    faults = (("head", "oom", 0, 0), ("embed", "nonfinite", 1, 2))
    value = stages.pipeline(stages.with_armed(sessions.stages(), faults))
    armed = {c.name: c.armed for g in value.groups for c in g.chips if c.armed}
    assert armed == {"head": ("oom, always",), "embed": ("nonfinite, on time 3",)}


@pytest.mark.parametrize(
    ("times", "skip", "words"),
    [
        (1, 0, "next time"),
        (1, 2, "on time 3"),
        (0, 0, "always"),
        (0, 4, "always from time 5"),
        (3, 0, "3 times"),
        (2, 1, "2 times from time 2"),
    ],
)
def test_when_a_fault_fires(times, skip, words):
    assert stages.when(times, skip) == words


def test_stage_table_has_the_same_order():
    table = stages.stage_table(sessions.stages("head"))
    assert [row.cells[0].text for row in table.rows] == [n for n, _ in sessions.stage_names()]
    failed = next(row for row in table.rows if row.cells[0].text == "head")
    assert failed.cells[1].text == "failed: nonfinite"


def test_pieces_of_one_op_are_told_apart():
    one = sessions.stages()[3]
    again = type(one)(one.name, one.kind, one.state, 5, 1)
    value = stages.pipeline((one, again))
    assert [group.title for group in value.groups] == ["embed", "embed (piece 2)"]
