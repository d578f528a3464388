"""What went wrong, the first error on top, with expected and given and where it leads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.models import text
from app.models.table import Cell, Column, Jump
from engine.snapshot import CheckResult, Record

COLUMNS = (
    Column("Severity"),
    Column("Event", "right", mono=True),
    Column("Expected", "right", mono=True),
    Column("Given", "right", mono=True),
    Column("Nearest legal", "right", mono=True),
    Column("What happened"),
)
SEVERITIES = ("bug", "failed", "refused", "notice")
"""Loudest first."""
LOOKS = {
    "bug": ("cross", "failed"),
    "failed": ("cross", "failed"),
    "refused": ("warning", "warning"),
    "notice": ("dash", "text2"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that went wrong."""

    severity: str
    sentence: str
    event: int | None = None
    expected: str = ""
    given: str = ""
    nearest: str = ""
    jump: Jump | None = None
    n_times: int = 1
    """How often the same happened in a row."""


def of_record(record: Record) -> Problem | None:
    """The problem that a journal record tells of; None when it published."""
    if record.outcome == "ok":
        return None
    severity = {"rejected": "refused", "failed": "failed"}.get(record.outcome, "notice")
    written = record.positions_written
    given = record.given
    positions = written if written and written[1] > written[0] else None
    if positions is None and given is not None and given >= 0 and record.reason != "capacity":
        positions = (given, given + 1)
    return Problem(
        severity,
        record.sentence or record.result,
        record.number,
        "" if record.expected is None else text.count(record.expected),
        text.count(record.given) if record.given is not None else record.bad_value.split(" ")[0],
        "" if record.nearest is None else text.count(record.nearest),
        Jump(seq=record.seq, positions=positions, event=record.number, stage=record.stage or None),
    )


def of_check(result: CheckResult) -> Problem | None:
    """The problem that a check found; None when it passed."""
    return None if result.ok else Problem("bug", f"{result.name}: {result.sentence}")


def of_trouble(command: str, sentence: str) -> Problem:
    """A command that could not be carried out."""
    return Problem("refused", f"{command}: {sentence}")


class Problems:
    """All problems of a session in the order in which they came; the first one stays first."""

    def __init__(self, limit: int = 5_000) -> None:
        self.items: list[Problem] = []
        self.n_more = 0
        """Problems after the first `limit`, which are counted only."""
        self.checks: dict[str, bool] = {}
        self._limit = limit

    def add(self, problem: Problem | None) -> None:
        """Keep a problem; the same sentence again only counts up."""
        if problem is None:
            return
        last = self.items[-1] if self.items else None
        if last and (last.severity, last.sentence) == (problem.severity, problem.sentence):
            self.items[-1] = replace(last, n_times=last.n_times + 1)
        elif len(self.items) < self._limit:
            self.items.append(problem)
        else:
            self.n_more += 1

    def add_check(self, result: CheckResult) -> None:
        """Remember that a check ran, and what it found."""
        self.checks[result.name] = result.ok
        self.add(of_check(result))

    def clear(self) -> None:
        """Forget all, at the start of a session."""
        self.items.clear()
        self.checks.clear()
        self.n_more = 0

    def count(self, severities: Iterable[str] = SEVERITIES[:3]) -> int:
        """How many problems there are, repeats not counted."""
        wanted = set(severities)
        return sum(item.severity in wanted for item in self.items)

    def headline(self) -> Problem | None:
        """The first error: the first bug if there is one, else the first problem."""
        bugs = (item for item in self.items if item.severity == "bug")
        return next(bugs, self.items[0] if self.items else None)

    def table(self) -> ProblemTable:
        """One row a problem, bugs first, then in the order in which they came."""
        bugs = [item for item in self.items if item.severity == "bug"]
        if not bugs:
            return ProblemTable(tuple(self.items))
        return ProblemTable(bugs + [item for item in self.items if item.severity != "bug"])

    def empty_words(self) -> str:
        """What to say when there is no problem: which checks ran."""
        if not self.checks:
            return "No problems. No check ran yet: run one from the Checks panel."
        n_passed = sum(self.checks.values())
        names = ", ".join(self.checks)
        return (
            f"No problems. {n_passed} of {text.plural(len(self.checks), 'check')} passed: {names}."
        )


class ProblemTable:
    """Problems as a table; cells are made when they are looked at."""

    columns = COLUMNS

    def __init__(self, items: Sequence[Problem] = ()) -> None:
        self._items = items
        self._n_rows = len(items)

    @property
    def n_rows(self) -> int:
        return self._n_rows

    def cell(self, row: int, column: int) -> Cell:
        problem = self._items[row]
        match column:
            case 0:
                glyph, role = LOOKS[problem.severity]
                return Cell(problem.severity, role=role, glyph=glyph)
            case 1:
                return Cell(text.optional(problem.event))
            case 2:
                return Cell(problem.expected or text.NOTHING)
            case 3:
                return Cell(problem.given or text.NOTHING)
            case 4:
                return Cell(problem.nearest or text.NOTHING)
            case _:
                times = f" ({text.count(problem.n_times)} times)" if problem.n_times > 1 else ""
                return Cell(problem.sentence + times)

    def jump(self, row: int) -> Jump | None:
        return self._items[row].jump

    def key(self, row: int) -> str:
        return f"{self._items[row].event}/{self._items[row].sentence}"
