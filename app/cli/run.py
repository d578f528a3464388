"""`bankflip run`: execute scenarios, compare with what they expect."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from app import about
from app.cli.common import BACKENDS, UsageError, check_output, make_folder, one_line, whole_number
from app.models.text import outcomes, plural
from app.play import Played, engine_for, play, to_result
from app.resources import SCENARIOS
from engine import cases, save_session
from engine.capture import CaptureWriter
from engine.errors import Unreadable
from engine.opjson import FORMS
from engine.snapshot import Record

HELP = "execute scenarios and compare with what they expect"

EPILOG = """A scenario is a JSON or TOML file, or the name of one that ships:
{names}

A file needs `ops` and `capacity` (positions that a sequence may hold). `model` is a folder or a
built-in name; without it only the history is kept. `expect` has one result an op, "ok" or
"rejected: REASON", and may end with {{"final": ...}}. The ops and their fields:
{ops}

start, stop, tokens, chunk and times may be absent. `fail` makes the op in `during` fail right
after `stage`. A mistake in a file is answered with what would be right there.

examples:
  bankflip run failed-stage
  bankflip run my.json --verify --record my.bankflip
  bankflip run *.json --json --backend cpu"""


def shipped() -> dict[str, Path]:
    """The scenarios that ship, by name."""
    return {path.stem: path for path in sorted(SCENARIOS.glob("*")) if path.suffix in SUFFIXES}


SUFFIXES = (".json", ".toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    names = textwrap.fill(
        ", ".join(shipped()),
        78,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
    )
    ops = "\n".join(f"  {name:<12} {', '.join(form.fields)}" for name, form in FORMS.items())
    parser.epilog = EPILOG.format(names=names, ops=ops)
    parser.add_argument("scenarios", metavar="SCENARIO", nargs="+", help="a file or shipped name")
    parser.add_argument("--json", action="store_true", help="print a list, one object a scenario")
    parser.add_argument("--record", metavar="F", type=Path, help="write a capture of the session")
    parser.add_argument("--report", metavar="DIR", type=Path, help="write a report into DIR")
    parser.add_argument(
        "--save", metavar="F", type=Path, help="save the session as it is after the last op"
    )
    add_session_arguments(parser)
    parser.add_argument(
        "--verify", action="store_true", help="after each op, compare with a fresh session"
    )
    parser.add_argument(
        "--stop-after", metavar="N", type=whole_number(0), help="execute only the first N ops"
    )
    parser.add_argument(
        "--no-text", action="store_true", help="leave token ids out of the capture and the report"
    )


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Which device and model execute a scenario."""
    parser.add_argument(
        "--backend", choices=BACKENDS, default="auto", help="device of the model (auto)"
    )
    parser.add_argument(
        "--model", metavar="DIR", help="model folder or name, instead of the scenario's"
    )


def load(name: str) -> cases.Scenario:
    """A scenario by path or shipped name. Raises: Malformed, Unreadable, OSError."""
    path = Path(name)
    if not path.exists() and name in shipped():
        path = shipped()[name]
    if path.is_dir():
        raise Unreadable(name, "not a scenario", "a file", "a folder")
    if not path.exists():
        raise Unreadable(name, "no such file", f"a file or one of {', '.join(shipped())}")
    return cases.load(path)


def run(args: argparse.Namespace) -> int:
    """Execute every scenario; the status is the worst of them."""
    for option in ("record", "save"):
        path = getattr(args, option)
        if path is not None:
            if len(args.scenarios) > 1:
                raise UsageError(f"--{option} takes one scenario, given {len(args.scenarios)}")
            check_output(path)
    if args.report is not None:
        make_folder(args.report)
    status = 0
    taken: set[str] = set()
    results: list[dict[str, Any]] = []
    for name in args.scenarios:
        try:
            played = execute(name, args)
        except (Unreadable, OSError) as error:
            print(f"bankflip run: {one_line(error)}", file=sys.stderr)
            status = max(status, 2)
            continue
        status = max(status, 0 if played.ok else 1)
        if args.json:
            results.append(to_result(played))
            for problem in played.mismatches:
                print(f"bankflip run: {played.scenario.case}: {problem}", file=sys.stderr)
        else:
            print("\n".join(lines(played)))
        if args.report is not None:
            folder = args.report
            if len(args.scenarios) > 1:
                folder = folder / folder_name(played.scenario.case, taken)
            write_report(played, folder, args)
    if args.json:
        print(json.dumps(results, indent=1))
    return status


def folder_name(case: str, taken: set[str]) -> str:
    """A name for a case's folder that leads nowhere else and that no other case has."""
    plain = re.sub(r"[^\w. -]+", "-", case).strip(". ")[:80] or "case"
    names = (plain, *(f"{plain}-{n}" for n in range(2, len(taken) + 3)))
    name = next(name for name in names if name.lower() not in taken)
    taken.add(name.lower())
    return name


def execute(name: str, args: argparse.Namespace) -> Played:
    """Play one scenario, and keep of it what was asked for."""
    scenario = load(name)
    played = recorded(scenario, args)
    if args.save is not None:
        save_session(played.engine, args.save)
    return played


def recorded(scenario: cases.Scenario, args: argparse.Namespace) -> Played:
    """Play a scenario, with a capture where one was asked for."""
    engine = engine_for(scenario, backend=args.backend, model=args.model, self_check=True)
    with ExitStack() as stack:
        record = None
        if args.record is not None:
            start = engine.snapshot()
            facts = about.of_session(start, scenario.title or scenario.case)
            writer = CaptureWriter(args.record, start, facts, with_text=not args.no_text)
            record = stack.enter_context(writer).record
        return play(
            scenario,
            engine,
            verify=args.verify,
            stop_after=args.stop_after,
            on_record=record or (lambda record: None),
        )


def write_report(played: Played, folder: Path, args: argparse.Namespace) -> None:
    """A report on what was just executed."""
    from app.report.sources import of_played
    from app.report.write import FORMATS, write

    subject = of_played(played, with_text=not args.no_text)
    write(subject, make_folder(folder), FORMATS, "light")


def lines(played: Played) -> list[str]:
    """What a person reads."""
    scenario = played.scenario
    ended = outcomes(record.outcome for record in played.records)
    word = "as expected" if played.ok else "NOT as expected"
    if scenario.expect is None and played.ok:
        word = "done"
    if played.stopped:
        word += f", stopped after {len(played.records)} of {len(scenario.ops)} ops"
    head = f"{scenario.case}: {word}; {plural(len(played.records), 'op')}, {ended}"
    without = "" if played.with_model else " (history only: no model)"
    found = [f"{head}, {plural(played.flips, 'flip')}{without}"]
    found += [f"  op {r.number} {refusal_words(r)}" for r in played.records if r.outcome != "ok"]
    return found + [f"  {problem}" for problem in played.mismatches]


def refusal_words(record: Record) -> str:
    """A refusal and its proof in a line."""
    same = record.digests_before == record.digests_after
    proof = f"all {len(record.digests_after)} public digests as before" if same else "STATE CHANGED"
    return f"{record.sentence} [{proof}]"
