"""`bankflip shrink`: the smallest scenario that still fails in the same way."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.cli.common import UsageError, check_output, whole_number, write_atomically
from app.cli.run import add_session_arguments, load
from app.cli.sweep import Sessions
from app.play import play
from engine import cases
from engine.cases import Final, Scenario
from engine.errors import InvariantBroken, Malformed
from engine.ops import Append, Fail, Op, Transaction
from engine.shrink import Shrunk, shrink
from engine.sweep import replace_append, resized

HELP = "reduce a failing scenario to a minimal one"

EPILOG = """Without --until the failure is an expectation that is not met, or an invariant that
breaks, and the result fails in the same way. With it, CMD is run on a scenario file for each try
({} stands for the file; without {} it is added at the end) and fails by exiting nonzero.

examples:
  bankflip shrink failing.json --out small.json
  bankflip shrink failing.json --until "python check.py {}"

Exit status: 0 shrunk, 2 when the scenario does not fail in the first place."""


@dataclass(frozen=True, slots=True)
class Step:
    """An op together with what it should give."""

    op: Op
    expect: str | None


Script = tuple[Step, ...]
THE_END = "the end"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("scenario", metavar="SCENARIO", help="a file or shipped name")
    parser.add_argument("--until", metavar="CMD", help="a command that exits nonzero on failing")
    parser.add_argument("--out", metavar="F.json", type=Path, help="write the smallest scenario")
    parser.add_argument("--json", action="store_true", help="print JSON (schemas/shrink.json)")
    parser.add_argument(
        "--tries",
        metavar="N",
        type=whole_number(1),
        default=2000,
        help="most scenarios to try (2000)",
    )
    add_session_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Shrink; the smallest scenario goes to --out, else to stdout."""
    if args.out is not None:
        check_output(args.out)
    scenario = load(args.scenario)
    steps = steps_of(scenario)
    with tempfile.TemporaryDirectory(prefix="bankflip-shrink-") as folder:
        failure, fails = oracle(scenario, args, Path(folder))
        found = shrink(steps, fails, lambda script: simpler(script, scenario), args.tries)
    small = with_steps(scenario, found.steps, failure.startswith(THE_END))
    if args.out is not None:
        write_atomically(args.out, cases.dump(small).encode())
    if args.json:
        print(json.dumps(to_json(scenario, small, failure, found), indent=1))
    elif args.out is None:
        print(cases.dump(small), end="")
    if not args.json:
        print(summary(scenario, small, failure, found), file=sys.stderr)
    return 0


def steps_of(scenario: Scenario) -> Script:
    """Ops paired with what they should give."""
    expect: tuple[str | None, ...] = scenario.expect or (None,) * len(scenario.ops)
    return tuple(Step(op, word) for op, word in zip(scenario.ops, expect, strict=True))


def with_steps(scenario: Scenario, steps: Script, keep_final: bool = False) -> Scenario:
    """The scenario with other ops.

    Fewer ops end elsewhere, so `final` goes, unless it is what fails: then it stays for the
    sequences that are still named.
    """
    ops = tuple(step.op for step in steps)
    words = tuple(step.expect for step in steps)
    expect = tuple(word for word in words if word is not None)
    bare = replace(scenario, ops=ops, expect=expect if scenario.expect else None, final=None)
    named = set(bare.sequences)
    final = tuple((seq, end) for seq, end in scenario.final or () if seq in named)
    keep_final = keep_final or ops == scenario.ops
    return replace(bare, final=final if keep_final and scenario.final and expect else None)


# what failing means


def oracle(
    scenario: Scenario, args: argparse.Namespace, folder: Path
) -> tuple[str, Callable[[Script], bool]]:
    """The failure in words, and whether a script still shows it. Raises: UsageError."""
    if args.until is not None:
        return until(scenario, args.until, folder)
    sessions = Sessions(scenario, args.backend, args.model)
    wanted = signature(scenario, steps_of(scenario), sessions)
    if wanted is None:
        raise UsageError(f"{scenario.path}: nothing to shrink, it gives what it expects")

    def fails(script: Script) -> bool:
        found = signature(scenario, script, sessions)
        return found is not None and same_failure(wanted, found)

    return str(wanted), fails


@dataclass(frozen=True, slots=True)
class Failure:
    """What kind of failure a script shows first."""

    kind: str
    """`result`, `final` or `invariant`."""
    op: str = ""
    expected: str = ""
    given: str = ""

    def __str__(self) -> str:
        if self.kind == "invariant":
            return f"an invariant breaks: {self.given}"
        where = self.op if self.kind == "result" else f"{THE_END} of {self.op}"
        return f"{where}: expected {self.expected}, got {self.given}"


def same_failure(wanted: Failure, found: Failure) -> bool:
    """Whether it is the same failure; the words of a broken invariant may hold other numbers."""
    return wanted.kind == "invariant" == found.kind or wanted == found


def signature(scenario: Scenario, script: Script, sessions: Sessions) -> Failure | None:
    """The first failure of a script, None when it gives what it expects."""
    candidate = with_steps(scenario, script)
    try:
        played = play(replace(candidate, expect=None, final=None), sessions.new(candidate))
    except InvariantBroken as error:
        return Failure("invariant", given=str(error))
    except Malformed:
        return None
    for step, result in zip(script, played.results, strict=True):
        if step.expect is not None and step.expect != result:
            return Failure("result", step.op.name, step.expect, result)
    ends = dict(played.final)
    for seq, end in scenario.final or ():
        if ends.get(seq) != end:
            return Failure("final", f"sequence {seq}", told(end), told(ends.get(seq)))
    return None


def told(end: Final | None) -> str:
    """An end in words."""
    if end is None or end.run is None:
        return "empty"
    return f"{end.run[0]} to {end.run[1]}"


def until(scenario: Scenario, command: str, folder: Path) -> tuple[str, Callable[[Script], bool]]:
    """Failing by a command of the user, which gets each script as a file in `folder`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--until: {error}") from error
    if not words:
        raise UsageError("--until: expected a command, given nothing")
    if not any("{}" in word for word in words):
        words.append("{}")
    place = folder / "scenario.json"

    def fails(script: Script) -> bool:
        place.write_text(cases.dump(with_steps(scenario, script)), encoding="utf-8")
        filled = [word.replace("{}", str(place)) for word in words]
        done = subprocess.run(
            filled, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return done.returncode != 0

    try:
        if not fails(steps_of(scenario)):
            raise UsageError(f"{scenario.path}: nothing to shrink, the command exits with 0")
    except OSError as error:
        raise UsageError(f"--until: {words[0]} can't be run: {error.strerror}") from error
    return f"the command {command!r} exits nonzero", fails


# simpler steps


def simpler(script: Script, scenario: Scenario) -> Iterator[Script]:
    """Scripts with one op made simpler, the boldest first."""
    for number, step in enumerate(script):
        op = step.op
        if isinstance(op, Append):
            yield from _shorter(script, number, op, scenario)
        if isinstance(op, Fail) and op.times != 1:
            yield _with(script, number, replace(op, times=1))
        if isinstance(op, Transaction):
            for at in range(len(op.ops)):
                yield _with(script, number, replace(op, ops=op.ops[:at] + op.ops[at + 1 :]))
        if isinstance(op, Append) and op.chunk is not None:
            yield _with(script, number, Append(op.seq, op.positions, op.tokens))
        if isinstance(op, Fail) and isinstance(op.during, Append):
            during = op.during
            for n in _lengths(len(during.positions)):
                yield _with(script, number, replace(op, during=_cut(during, n)))


def _with(script: Script, number: int, op: Op) -> Script:
    return (*script[:number], replace(script[number], op=op), *script[number + 1 :])


def _lengths(n: int) -> list[int]:
    return sorted({1, n // 2, n - 1} - {0, n})


def _cut(op: Append, n: int) -> Append:
    return replace_append(op, op.positions[:n], None if op.tokens is None else op.tokens[:n])


def _shorter(script: Script, number: int, op: Append, scenario: Scenario) -> Iterator[Script]:
    """Fewer positions, once with what follows moved along and once alone."""
    bare = with_steps(scenario, script)
    for n in _lengths(len(op.positions)):
        moved = resized(bare, number, n).ops
        yield tuple(replace(s, op=o) for s, o in zip(script, moved, strict=True))
        yield _with(script, number, _cut(op, n))


# what is said


def n_tokens(scenario: Scenario) -> int:
    """Positions that all appends ask for."""

    def of(op: Any) -> int:
        if isinstance(op, Append):
            return len(op.positions)
        if isinstance(op, Transaction):
            return sum(of(inner) for inner in op.ops)
        return of(op.during) if isinstance(op, Fail) else 0

    return sum(of(op) for op in scenario.ops)


def to_json(
    scenario: Scenario, small: Scenario, failure: str, found: Shrunk[Step]
) -> dict[str, Any]:
    """The object of `shrink --json`."""
    return {
        "case": scenario.case,
        "failure": failure,
        "ops_before": len(scenario.ops),
        "ops_after": len(small.ops),
        "tokens_before": n_tokens(scenario),
        "tokens_after": n_tokens(small),
        "tries": found.tries,
        "minimal": found.complete,
        "scenario": json.loads(cases.dump(small)),
    }


def summary(scenario: Scenario, small: Scenario, failure: str, found: Shrunk[Step]) -> str:
    """One line for people."""
    end = "minimal" if found.complete else "the limit of tries was reached"
    return (
        f"{scenario.case}: {len(scenario.ops)} ops became {len(small.ops)}, "
        f"{n_tokens(scenario)} positions became {n_tokens(small)}, {found.tries} tries, {end}; "
        f"{failure}"
    )
