"""`bankflip sweep`: the sizes around every boundary, and every early cut of the prompt."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.cli.common import check_output, whole_number
from app.cli.run import add_session_arguments, load
from app.play import Played, engine_for, graph_stages, play
from engine.cases import OK, Scenario
from engine.checks import run_check
from engine.engine import Engine
from engine.ops import Append
from engine.replay import check_stages
from engine.snapshot import Digests, Record
from engine.sweep import Grid, Variant, boundaries, boundary_grid, cut_grid

HELP = "try every size around the boundaries of a scenario"

EPILOG = """Each append of the scenario is made to end one below, at and one above every boundary
(group size, window, wrap, capacity), and its first append is cut in one, two and three pieces.
A cell passes when the op gives what the definition says, a refusal changes no digest, the runs
are whole, every digest recomputed from bytes is the sealed one, and cuts end in the same bytes.

examples:
  bankflip sweep wrap
  bankflip sweep failed-stage --json --out sweep.png"""

MOST = 512


@dataclass(frozen=True, slots=True)
class Cell:
    """What one variant gave."""

    row: str
    column: str
    ok: bool
    result: str
    """What the varied op gave; of a cut prompt, its last piece."""
    reason: str
    """Why it fails; empty when it passes."""


@dataclass(frozen=True, slots=True)
class Swept:
    """A grid and its cells."""

    grid: Grid
    cells: tuple[Cell, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("scenario", metavar="SCENARIO", help="a file or shipped name")
    parser.add_argument("--json", action="store_true", help="print JSON (schemas/sweep.json)")
    parser.add_argument("--out", metavar="F.png", type=Path, help="write a picture of the grids")
    parser.add_argument(
        "--theme", choices=("light", "dark"), default="light", help="colours of the picture"
    )
    parser.add_argument(
        "--most",
        metavar="N",
        type=whole_number(1, 1 << 20),
        default=MOST,
        help=f"longest run to try ({MOST})",
    )
    parser.add_argument(
        "--cuts",
        metavar="N",
        type=whole_number(1, 64),
        default=8,
        help="cut the prompt after up to N tokens (8)",
    )
    add_session_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Try every variant; 1 when a cell fails."""
    if args.out is not None:
        check_output(args.out)
    scenario = load(args.scenario)
    swept = sweep(scenario, args)
    cells = [cell for part in swept for cell in part.cells]
    ok = all(cell.ok for cell in cells)
    if args.out is not None:
        from app.report.grid_picture import draw

        draw(swept, scenario.title or scenario.case, args.theme, args.out)
    print(json.dumps(to_json(scenario, swept), indent=1) if args.json else text(scenario, swept))
    return 0 if ok else 1


def sweep(scenario: Scenario, args: argparse.Namespace) -> tuple[Swept, ...]:
    """Both grids, executed."""
    sessions = Sessions(scenario, args.backend, args.model)
    edges = boundary_grid(scenario, args.most)
    found = [Swept(edges, tuple(judge_boundary(v, sessions) for v in edges.variants))]
    cuts = cut_grid(scenario, args.cuts)
    whole = sessions.whole(cuts)
    found.append(Swept(cuts, tuple(judge_cut(v, sessions, whole) for v in cuts.variants)))
    return tuple(found)


class Sessions:
    """Makes one empty session after the other; the model is loaded once."""

    def __init__(self, scenario: Scenario, backend: str, model: str | None) -> None:
        first = engine_for(scenario, backend=backend, model=model)
        check_stages(scenario, graph_stages(first))
        self._model, self._name = first.model, first.name

    def new(self, scenario: Scenario) -> Engine:
        """An empty session."""
        return Engine(
            self._model,
            name=self._name,
            group_size=scenario.group_size,
            capacity=scenario.capacity,
            window=scenario.window,
            prove="failures",
        )

    def whole(self, grid: Grid) -> tuple[Digests, str]:
        """Digests of the uncut prompt and its result; empty for a grid without cells."""
        if not grid.variants:
            return (), OK
        variant = grid.variants[0]
        played, engine = self.play(uncut(variant.scenario))
        return engine.digests(), played.results[0]

    def play(self, scenario: Scenario) -> tuple[Played, Engine]:
        """Execute a variant on a session of its own."""
        engine = self.new(scenario)
        return play(scenario, engine), engine


def uncut(scenario: Scenario) -> Scenario:
    """The pieces of a cut prompt as one append again."""
    pieces = [op for op in scenario.ops if isinstance(op, Append)]
    positions = [p for piece in pieces for p in piece.positions]
    tokens = None
    if all(piece.tokens is not None for piece in pieces):
        tokens = [t for piece in pieces for t in piece.tokens or ()]
    return replace(scenario, ops=(Append(pieces[0].seq, positions, tokens, pieces[0].chunk),))


def judge_boundary(variant: Variant, sessions: Sessions) -> Cell:
    """One cell of the boundary grid."""
    played, engine = sessions.play(variant.scenario)
    found = whole_state(played, engine)
    result = played.results[variant.op_number]
    if result != variant.must:
        found.insert(0, f"op {variant.op_number}: expected {variant.must}, got {result}")
    return cell(variant, played, found)


def judge_cut(variant: Variant, sessions: Sessions, whole: tuple[Digests, str]) -> Cell:
    """One cell of the cuts: the same bytes as the prompt in one piece."""
    played, engine = sessions.play(variant.scenario)
    found = whole_state(played, engine)
    digests, result = whole
    if variant.must != OK or result != OK:
        if result != variant.must:
            found.insert(0, f"uncut: expected {variant.must}, got {result}")
        return cell(variant, played, found)
    if any(word != OK for word in played.results):
        found.insert(0, f"a piece gives {next(w for w in played.results if w != OK)}")
    differing = [a for (a, x), (_, y) in zip(digests, engine.digests(), strict=True) if x != y]
    if differing:
        found.insert(0, f"not the bytes of one piece: {', '.join(differing)}")
    return cell(variant, played, found)


def cell(variant: Variant, played: Played, found: Sequence[str]) -> Cell:
    """A cell from what was found wrong."""
    number = variant.op_number if variant.op_number >= 0 else len(played.results) - 1
    result = played.results[number]
    return Cell(variant.row, variant.column, not found, result, "; ".join(found))


def whole_state(played: Played, engine: Engine) -> list[str]:
    """What is wrong with the state or with any refusal, by definition."""
    found = [f"op {r.number}: refused, and yet state changed" for r in played.records if changed(r)]
    for view in played.end.sequences:
        n = view.stop - view.start
        if (view.n_groups, view.n_tail) != divmod(n, view.group_size):
            found.append(
                f"sequence {view.seq}: {n} positions in {view.n_groups} groups and a tail "
                f"of {view.n_tail}"
            )
        if sum(count for _, count in view.extents) != n:
            found.append(f"sequence {view.seq}: {n} positions in other than {n} cells")
    audit = run_check(engine, "audit")
    return found if audit.ok else [*found, audit.sentence]


def changed(record: Record) -> bool:
    """A refused op that changed a digest."""
    return record.outcome != "ok" and record.digests_before != record.digests_after


def to_json(scenario: Scenario, swept: Sequence[Swept]) -> dict[str, Any]:
    """The object of `sweep --json`."""
    cells = [cell for part in swept for cell in part.cells]
    return {
        "case": scenario.case,
        "ok": all(cell.ok for cell in cells),
        "tried": len(cells),
        "failed": sum(not cell.ok for cell in cells),
        "boundaries": [asdict(boundary) for boundary in boundaries(scenario)],
        "grids": [
            {
                "name": part.grid.name,
                "rows": list(part.grid.rows),
                "columns": list(part.grid.columns),
                "cells": [asdict(cell) for cell in part.cells],
                "left_out": list(part.grid.left_out),
            }
            for part in swept
        ],
    }


def text(scenario: Scenario, swept: Sequence[Swept]) -> str:
    """Grids for a terminal: `+` passes, `r` is refused as it must be, `X` fails."""
    cells = [cell for part in swept for cell in part.cells]
    bad = sum(not cell.ok for cell in cells)
    head = f"{scenario.case}: {len(cells)} variants, " + (f"{bad} FAIL" if bad else "all pass")
    out = [head, "  + passes   r refused, as it must be   X fails   . makes no sense here"]
    for part in swept:
        out += ["", f"{part.grid.name}", *_table(part)]
        out += [f"  not tried: {sentence}" for sentence in part.grid.left_out]
    out += [f"  X {cell.row}, {cell.column}: {cell.reason}" for cell in cells if not cell.ok]
    return "\n".join(out)


def mark(cell: Cell | None) -> str:
    """One sign for a cell."""
    if cell is None:
        return "."
    if not cell.ok:
        return "X"
    return "+" if cell.result == OK else "r"


def _table(part: Swept) -> list[str]:
    found = {(cell.row, cell.column): cell for cell in part.cells}
    wide = max([len(row) for row in part.grid.rows], default=0)
    lines = []
    for number, column in enumerate(part.grid.columns):
        bars = " ".join("|" for _ in range(number))
        lines.append(f"  {'':<{wide}}  {bars + ' ' if bars else ''}{column}")
    for row in part.grid.rows:
        signs = " ".join(mark(found.get((row, column))) for column in part.grid.columns)
        lines.append(f"  {row:<{wide}}  {signs}")
    return lines
