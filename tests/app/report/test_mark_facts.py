"""A report lists bookmarks and notes, escaped, and says which places are not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from app.__main__ import main
from app.models.marks import CellAt, EventAt, Mark, Span, check_of
from app.models.marks_file import encode
from app.report import html
from app.report.mark_facts import beside, mark_facts, read_marks
from app.report.sources import Subject, open_subject
from app.report.write import write
from engine.errors import Unreadable
from tests.helpers.commands import SCHEMAS

pytestmark = pytest.mark.usefixtures("qapp", "epoch")
HOSTILE = '<script>alert("x")</script> & co'


def marks_of(subject: Subject) -> dict:
    record = subject.newest.records[0]
    view = subject.newest.snapshot.sequences[0]
    marks = (
        Mark(Span(view.seq, view.start, view.start + 1), 1, HOSTILE, "one\ntwo " + HOSTILE),
        Mark(Span(view.seq, 10**6, 10**6 + 1), 2),
        Mark(CellAt(0), 0, "", "only a note"),
        Mark(EventAt(record.number, check_of(record)), 3),
        Mark(EventAt(10**6, "0" * 16), 4),
    )
    return {mark.place: mark for mark in marks}


def test_each_place_is_there_or_says_why_not(hole_refused: Subject) -> None:
    facts = mark_facts(marks_of(hole_refused), hole_refused.newest)
    assert [(fact.number, fact.there) for fact in facts] == [
        (1, True),
        (2, False),
        (0, True),
        (3, True),
        (4, False),
    ]
    assert facts[1].now == "not in the run"
    assert facts[4].now == "not among the events of this report"


def test_html_and_json_list_them_escaped(hole_refused: Subject, tmp_path: Path) -> None:
    marks = mark_facts(marks_of(hole_refused), hole_refused.newest)
    subject = replace(hole_refused, facts=replace(hole_refused.facts, marks=marks))
    write(subject, tmp_path, ("json",))
    facts = json.loads((tmp_path / "report.json").read_text())
    jsonschema.validate(facts, json.loads((SCHEMAS / "report.json").read_text()))
    assert facts["marks"][0]["note"] == "one\ntwo " + HOSTILE
    page = html.render(subject.facts, {}, {}, "light", "0", "", 4)
    assert "<h2>Bookmarks and notes</h2>" in page
    assert "<script" not in page
    assert "one\ntwo &lt;script&gt;" in page
    for_print = html.environment().get_template("report_pdf.html.j2")
    colours = dict.fromkeys(("good", "goodbase", "bad", "badbase", "fail"), "")
    context = html.context(subject.facts, "light", "0", "", 4)
    assert "<script" not in for_print.render(**context, css="", colours=colours, width=600)


def test_a_report_without_any_has_no_such_part(hole_refused: Subject) -> None:
    assert "Bookmarks" not in html.render(hole_refused.facts, {}, {}, "light", "0", "", 4)


def test_marks_of_another_engines_file_are_judged_by_its_runs(samples: Path) -> None:
    subject = open_subject(samples / "llama-cpp" / "hole.seq")
    hole = subject.facts.holes[0]
    seq = int(hole.seq)
    places = (
        Span(seq, hole.first - 1, hole.first),
        Span(seq, hole.first, hole.last + 1),
        CellAt(1),
    )
    facts = mark_facts({place: Mark(place, n) for n, place in enumerate(places, 1)}, subject.newest)
    assert [fact.there for fact in facts] == [True, False, False]
    assert [fact.now for fact in facts[1:]] == ["hole", "no cells here"]


def test_the_command_takes_them_from_beside_the_file_or_from_another(
    tmp_path: Path, capsys
) -> None:
    from app import resources

    scenario = tmp_path / "s.json"
    scenario.write_bytes((resources.SCENARIOS / "hole-refused.json").read_bytes())
    for name, path in (("here", beside(scenario)), ("other", tmp_path / "other.json")):
        path.write_bytes(encode({CellAt(0): Mark(CellAt(0), 1, name)}))
    out = tmp_path / "out"
    arguments = ["report", str(scenario), "--out", str(out), "--format", "json"]
    for more, name in (([], "here"), (["--bookmarks", str(tmp_path / "other.json")], "other")):
        main([*arguments, *more])
        facts = json.loads((out / "report.json").read_text())
        assert [mark["name"] for mark in facts["marks"]] == [name]
    assert main([*arguments, "--bookmarks", str(tmp_path / "none.json")]) == 2
    beside(scenario).write_text("{")
    assert main(arguments) == 2
    assert f"{beside(scenario)}: expected bookmarks as JSON" in capsys.readouterr().err


def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    assert read_marks(tmp_path / "absent") == {}
    (tmp_path / "bad").write_text("[]")
    with pytest.raises(Unreadable, match="bad: expected bookmarks"):
        read_marks(tmp_path / "bad")
