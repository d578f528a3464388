"""A scenario played op by op, expected against actual, or recorded from what the user does.

Owns the player's place and the record's form. Reading files is `engine.cases`, doing an op is the
engine; the op language is that of the case files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.models import text
from app.models.edits import op_words
from app.models.table import Cell, Column, Jump, Row, Table
from engine import cases
from engine.snapshot import Record, SequenceView

Json = dict[str, Any]
COLUMNS = (
    Column("Op", "right", mono=True),
    Column("What"),
    Column("Expected"),
    Column("Actual"),
    Column("Verdict"),
)
GROUP_SIZE = 4
CAPACITY = 4096


@dataclass
class Player:
    """A loaded scenario and how far it was played."""

    scenario: Json = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    final: dict[int, SequenceView] = field(default_factory=dict)

    @property
    def ops(self) -> list[Json]:
        """The ops in order."""
        return list(self.scenario.get("ops", ()))

    @property
    def expected(self) -> list[str]:
        """Expected result of each op; shorter than `ops` where nothing is expected."""
        return [item for item in self.scenario.get("expect", ()) if isinstance(item, str)]

    @property
    def title(self) -> str:
        """Name to show."""
        return str(self.scenario.get("title") or self.scenario.get("case") or "untitled")

    @property
    def next_op(self) -> Json | None:
        """The op that the next step does; None at the end."""
        return self.ops[len(self.results)] if len(self.results) < len(self.ops) else None

    def restart(self) -> None:
        """Back before the first op."""
        self.results.clear()
        self.events.clear()
        self.final.clear()

    def played(self, record: Record) -> None:
        """The next op was done."""
        self.results.append(record.result)
        self.events.append(record.number)
        self.final = {view.seq: view for view in record.sequences}

    def agrees(self, row: int) -> bool | None:
        """Whether an op did what was expected; None when it was not done or nothing is expected."""
        if row >= len(self.results) or row >= len(self.expected):
            return None
        return self.results[row] == self.expected[row]

    def first_difference(self) -> int | None:
        """First op whose result is not the expected one."""
        rows = range(len(self.results))
        return next((row for row in rows if self.agrees(row) is False), None)

    def verdict(self) -> tuple[str, str]:
        """(sentence, colour role) about the whole."""
        if not self.scenario:
            return "no scenario open", "text2"
        wrong = self.first_difference()
        done, total = len(self.results), len(self.ops)
        if wrong is not None:
            given, wanted = self.results[wrong], self.expected[wrong]
            return f"op {wrong}: expected {wanted}, given {given}", "failed"
        if done < total:
            return f"{done} of {text.plural(total, 'op')} done, as expected so far", "running"
        bad = self._final_differences()
        if bad:
            return bad[0], "failed"
        return f"all {text.plural(total, 'op')} as expected", "done"

    def _final_differences(self) -> list[str]:
        """Sentences about the expected end that did not come about."""
        wanted = next((i for i in self.scenario.get("expect", ()) if isinstance(i, dict)), None)
        out = []
        for name, facts in ((wanted or {}).get("final") or {}).items():
            given = final_facts(self.final.get(int(name)))
            out += [
                f"sequence {name}: expected {key} {facts[key]}, given {given[key]}"
                for key in given
                if key in facts and facts[key] != given[key]
            ]
        return out

    def table(self) -> Table:
        """One row an op."""
        return Table(COLUMNS, tuple(self._row(row, op) for row, op in enumerate(self.ops)))

    def _row(self, row: int, op: Json) -> Row:
        expected = self.expected[row] if row < len(self.expected) else ""
        done = row < len(self.results)
        verdict = {
            True: Cell("as expected", role="done", glyph="tick"),
            False: Cell("differs", role="failed", glyph="cross", bold=True),
            None: Cell("done" if done else "", role="text2", glyph="tick" if done else ""),
        }[self.agrees(row)]
        if row == len(self.results):
            verdict = Cell("next", role="running", glyph="triangle")
        cells = (
            Cell(str(row)),
            Cell(op_words(op), tip=json.dumps(op)),
            Cell(expected or text.NOTHING),
            Cell(self.results[row] if done else text.NOTHING),
            verdict,
        )
        return Row(cells, Jump(event=self.events[row]) if done else None, str(row))


def final_facts(view: SequenceView | None) -> Json:
    """The end of a sequence as case files write it; a published run has no hole."""
    if view is None or view.n_live == 0:
        return {"run": None, "complete_groups": 0, "tail": 0, "holes": []}
    return {
        "run": [view.start, view.stop - 1],
        "complete_groups": view.n_groups,
        "tail": view.n_tail,
        "holes": [],
    }


@dataclass
class Recorder:
    """What the user does, as a scenario."""

    running: bool = False
    ops: list[Json] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    final: dict[int, SequenceView] = field(default_factory=dict)
    header: Json = field(default_factory=dict)

    def start(self, group_size: int, capacity: int, window: int | None, model: str) -> None:
        """Begin anew."""
        self.running = True
        self.ops, self.results, self.final = [], [], {}
        self.header = {"group_size": group_size, "capacity": capacity}
        if window is not None:
            self.header["window"] = window
        if model:
            self.header["model"] = model

    def take(self, record: Record) -> None:
        """Note one event; an injected failure becomes a `fail` op around the op in flight."""
        if not self.running or not record.op_json:
            return
        if record.op == "undo":
            self._forget_last(record)
            return
        op = json.loads(record.op_json)
        if record.outcome in ("failed", "cancelled") and op.get("op") != "fail" and record.stage:
            op = {"op": "fail", "stage": record.stage, "kind": record.kind, "during": op}
        self.ops.append(op)
        self.results.append(record.result)
        self.final = {view.seq: view for view in record.sequences}

    def _forget_last(self, record: Record) -> None:
        """An undo takes the last op that was done out of the recording; no op says `undo`."""
        done = [n for n, result in enumerate(self.results) if result == "ok"]
        if record.outcome == "ok" and done:
            del self.ops[done[-1]], self.results[done[-1]]
            self.final = {view.seq: view for view in record.sequences}

    def scenario(self, name: str, title: str = "", note: str = "") -> Json:
        """The scenario recorded so far, with what happened as its expectation."""
        named = {seq for op in self.ops for seq in sequences_in(op)}
        final = {str(seq): final_facts(self.final.get(seq)) for seq in sorted(named)}
        out: Json = {"case": name}
        if title:
            out["title"] = title
        if note:
            out["note"] = note
        return {**out, **self.header, "ops": self.ops, "expect": [*self.results, {"final": final}]}


def sequences_in(op: Json) -> Sequence[int]:
    """Sequences that an op names, those of inner ops included."""
    found = [int(op[key]) for key in ("seq", "src", "dst") if isinstance(op.get(key), int)]
    inner = [*op.get("ops", ()), *([op["during"]] if "during" in op else [])]
    return found + [seq for item in inner for seq in sequences_in(item)]


def file_text(scenario: Json) -> str:
    """A scenario as its file, one op a line. Raises: Malformed when it follows no format."""
    return cases.dump(cases.parse(json.dumps(scenario).encode()))


def slug(name: str) -> str:
    """A name for files and functions: lower case letters, digits and single dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "scenario"


def pytest_text(scenario: Json) -> str:
    """A self-contained pytest file that plays the scenario and compares with its expectation."""
    name = slug(str(scenario.get("case") or scenario.get("title") or "scenario"))
    return (
        f'"""Scenario {name}, exported by Bankflip."""\n\n'
        "from pathlib import Path\n\n"
        "from app.__main__ import main\n\n"
        f"SCENARIO = r'''\n{file_text(scenario)}'''\n\n\n"
        f"def test_{name.replace('-', '_')}(tmp_path: Path) -> None:\n"
        f'    path = tmp_path / "{name}.json"\n'
        '    path.write_text(SCENARIO, encoding="utf-8")\n'
        '    assert main(["run", str(path)]) == 0\n'
    )
