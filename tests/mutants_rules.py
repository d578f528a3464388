"""Plants faults in a copy of the history layer and shows that the suite notices each of them.

Run it as `python -m tests.mutants_rules [NUMBER...]`; it exits 1 when a fault survives. Each fault
is one replacement in one file. `SUITE` is the fast part of the suite, run with `-x` in the copy;
the tests nearest to the file come first, which only saves time.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUITE = (
    "tests/test_cases.py",
    "tests/engine/test_run.py",
    "tests/engine/test_rules.py",
    "tests/engine/test_replay.py",
    "tests/engine/test_cells.py",
    "tests/engine/test_validate.py",
    "tests/engine/test_rules_random.py",
)
NEAREST = {
    "run.py": ("tests/engine/test_run.py",),
    "validate.py": ("tests/engine/test_validate.py",),
    "rules.py": ("tests/engine/test_rules.py",),
    "replay.py": ("tests/engine/test_replay.py",),
    "draft.py": ("tests/engine/test_cells.py", "tests/engine/test_rules_random.py"),
    "cells.py": ("tests/engine/test_cells.py",),
    "compaction.py": ("tests/engine/test_cells.py",),
}
# Qt's plug-in only costs time here; strict configuration would refuse its settings without it
PYTEST = (
    *("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:pytest-qt"),
    *("-o", "addopts=--import-mode=importlib", "-W", "ignore::pytest.PytestConfigWarning"),
)
CARRIED = ("engine", "tests", "pyproject.toml")


@dataclass(frozen=True)
class Mutant:
    """One fault: `old` stands exactly once in `engine/{file}` and becomes `new`."""

    what: str
    file: str
    old: str
    new: str

    def planted(self, source: str) -> str:
        """Raises: ValueError when the fault can't be planted any more."""
        if source.count(self.old) != 1:
            raise ValueError(f"{self.what}: {source.count(self.old)} places in {self.file}")
        return source.replace(self.old, self.new)


MUTANTS = (
    Mutant(
        "groups are aligned to multiples of the group size",
        "run.py",
        "start = self.start + number * group_size",
        "start = (self.start // group_size + number) * group_size",
    ),
    Mutant(
        "groups are counted between multiples of the group size",
        "run.py",
        "return self.n // group_size",
        "return self.stop // group_size - -(-self.start // group_size)",
    ),
    Mutant(
        "a full last group counts as tail",
        "run.py",
        "return self.n % group_size",
        "return (self.n - 1) % group_size + 1 if self.n else 0",
    ),
    Mutant(
        "the tail starts one late",
        "run.py",
        "return Run(self.start + self.n_groups(group_size) * group_size, self.stop)",
        "return Run(min(self.start + self.n_groups(group_size) * group_size + 1, self.stop),"
        " self.stop)",
    ),
    Mutant(
        "the frontier is one beyond the last position",
        "run.py",
        "return self.stop - 1 if self else None",
        "return self.stop if self else None",
    ),
    Mutant(
        "an empty run remembers where it was",
        "run.py",
        "if self.start == self.stop != 0:",
        "if self.start == self.stop == 0:",
    ),
    Mutant(
        "a missing position is taken as padding",
        "validate.py",
        "gaps = np.flatnonzero(steps != 1)",
        "gaps = np.flatnonzero(steps < 1)",
    ),
    Mutant(
        "a hole is tolerated at a group boundary",
        "validate.py",
        "gaps = np.flatnonzero(steps != 1)",
        "gaps = np.flatnonzero((steps != 1) & ((live[1:] - live[0]) % 4 != 0))",
    ),
    Mutant(
        "group numbers go on behind a gap as if it were not there",
        "validate.py",
        "numbers = (live - anchor) // group_size",
        "numbers = np.arange(live.size) // group_size",
    ),
    Mutant(
        "physically adjacent cells are grouped",
        "validate.py",
        "live, counts = np.unique(_legal(_as_array(positions)), return_counts=True)",
        "live = _legal(_as_array(positions)); counts = np.ones(live.size, np.intp)",
    ),
    Mutant(
        "a group with a repeated position is complete",
        "validate.py",
        "good = (distinct == group_size) & (values == group_size)",
        "good = distinct == group_size",
    ),
    Mutant(
        "a group with one position missing is complete",
        "validate.py",
        "good = (distinct == group_size) & (values == group_size)",
        "good = (distinct >= group_size - 1) & (values == distinct)",
    ),
    Mutant(
        "differences that wrap around pass as a run",
        "validate.py",
        "if int(values[-1]) - int(values[0]) != values.size - 1:",
        "if values.size < 1:",
    ),
    Mutant(
        "the last block of a long array is not looked at",
        "validate.py",
        "for start in range(0, values.size - 1, BLOCK):",
        "for start in range(0, values.size - BLOCK, BLOCK):",
    ),
    Mutant(
        "an append may leave a gap",
        "rules.py",
        "if following is not None and start != following:",
        "if following is not None and start < following:",
    ),
    Mutant(
        "an append may leave a gap behind a full group",
        "rules.py",
        "if following is not None and start != following:",
        "if following is not None and start != following"
        " and (start < following or span.n % draft.before.group_size):",
    ),
    Mutant(
        "an append may start on the last position",
        "rules.py",
        "if following is not None and start != following:",
        "if following is not None and start not in (following - 1, following):",
    ),
    Mutant(
        "positions may repeat at the end of an append",
        "rules.py",
        "for i in range(1, len(positions)):",
        "for i in range(1, len(positions) - 1):",
    ),
    Mutant(
        "one position more than the capacity",
        "rules.py",
        "and live + n > capacity:",
        "and live + n > capacity + 1:",
    ),
    Mutant(
        "only the first position of an append is bounded",
        "rules.py",
        "if last > MAX_POSITION:",
        "if start > MAX_POSITION:",
    ),
    Mutant(
        "the window holds one token more",
        "rules.py",
        "window, size = history.window, history.group_size",
        "window, size = history.window and history.window + 1, history.group_size",
    ),
    Mutant(
        "the window evicts a position, not a group",
        "rules.py",
        'yield "evict", size\n            live -= size',
        'yield "evict", 1\n            live -= 1',
    ),
    Mutant(
        "a rewind may go before the first position",
        "rules.py",
        "not span.start <= op.to <= span.stop",
        "not 0 <= op.to <= span.stop",
    ),
    Mutant(
        "a rewind beyond the end is a silent no-op",
        "rules.py",
        "not span.start <= op.to <= span.stop",
        "not span.start <= op.to",
    ),
    Mutant(
        "an eviction of more than is there empties the sequence",
        "rules.py",
        "if not 1 <= op.count <= live:",
        "if not (1 <= op.count and live):",
    ),
    Mutant(
        "a fork may end at the first position",
        "rules.py",
        "not span.start + 1 <= stop <= span.stop",
        "not span.start <= stop <= span.stop",
    ),
    Mutant(
        "a fork may overwrite one position",
        "rules.py",
        "if taken:",
        "if taken > 1:",
    ),
    Mutant(
        "a part may be shifted away from the rest",
        "rules.py",
        "if not draft.inside and rest and op.delta:",
        "if not draft.inside and rest and abs(op.delta) > 1:",
    ),
    Mutant(
        "a shift does not look at the highest position",
        "rules.py",
        "if moved.stop - 1 + op.delta > MAX_POSITION:",
        "if moved.start + op.delta > MAX_POSITION:",
    ),
    Mutant(
        "a removal may leave one position at the end",
        "rules.py",
        "start > span.start and stop < span.stop:",
        "start > span.start and stop < span.stop - 1:",
    ),
    Mutant(
        "a copy takes what is there of its range",
        "rules.py",
        "if start < stop and live == stop - start:",
        "if start < stop and live:",
    ),
    Mutant(
        "a refused inner op ends the transaction and keeps what came before",
        "rules.py",
        "            refusal.op = op.name\n            raise\n",
        "            refusal.op = op.name\n            break\n",
    ),
    Mutant(
        "a transaction may end in a hole",
        "rules.py",
        "    _check_result(draft, op)\n",
        "",
    ),
    Mutant(
        "a slot saved in a transaction may have a hole",
        "rules.py",
        "for slot in draft.saved:",
        "for slot in ():",
    ),
    Mutant(
        "a failed op is kept",
        "replay.py",
        "refusal = _fail(scenario, history, op, number)",
        "refusal = _fail(scenario, history, op, number)\n"
        "                history = apply(history, op.during, number).history",
    ),
    Mutant(
        "a fork goes on in the cells that its source reserved",
        "draft.py",
        "self._put(dst, tuple(part for part in parts if part is not None))",
        "self._put(dst, tuple(part for part in parts if part is not None));"
        " self._set_spare(dst, self._spare(src))",
    ),
    Mutant(
        "cells are freed although a slot holds them",
        "draft.py",
        "for slot, held in self.before.slots.items():",
        "for slot, held in ():",
    ),
    Mutant(
        "cells are freed although a fork shares them",
        "draft.py",
        "for seq, held in self.before.sequences.items():\n            if seq not in",
        "for seq, held in ():\n            if seq not in",
    ),
    Mutant(
        "a name that is taken keeps its old snapshot",
        "draft.py",
        "self._slots[slot] = self.pieces(seq)",
        "self._slots[slot] = old or self.pieces(seq)",
    ),
    Mutant(
        "a hole is glued over where two pieces stand side by side",
        "draft.py",
        "if found and found[-1].run.stop == piece.run.start:",
        "if found and found[-1].run.stop <= piece.run.start:",
    ),
    Mutant(
        "an append tells the wrong offset",
        "rules.py",
        "draft.append(op.seq, at, count, at - start)",
        "draft.append(op.seq, at, count, 0)",
    ),
    Mutant(
        "reserved cells stay free",
        "cells.py",
        "free = without(free, (spare,)) if spare[1] else free",
        "free = free",
    ),
    Mutant(
        "every append goes behind the highest cell",
        "cells.py",
        "taken = self.policy(free, wanted, after)",
        "taken = self.policy(free[-1:], wanted, after)",
    ),
    Mutant(
        "compaction moves a shared cell once for each of its users",
        "compaction.py",
        "without(((first, count),), placed)",
        "((first, count),)",
    ),
)


def survives(mutant: Mutant | None, suite: Sequence[str] = SUITE) -> bool:
    """True when the suite passes in a copy with the fault planted (None: no fault)."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__", "golden", "samples", "app", "graph")
        for name in CARRIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, copy / name)
        if mutant is None:
            return passes(copy, suite)
        file = copy / "engine" / mutant.file
        file.write_text(mutant.planted(file.read_text()))
        nearest = NEAREST[mutant.file]
        return passes(copy, nearest) and passes(copy, suite)


def passes(folder: Path, suite: Sequence[str]) -> bool:
    """True when these tests pass there. Raises: RuntimeError when they did not run."""
    command = [sys.executable, *PYTEST, *suite]
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return False  # a suite that hangs is noticed
    # 2: a test module that can't be imported any more notices the fault, too
    if ran.returncode not in (0, 1, 2):
        raise RuntimeError(f"the suite did not run: {ran.stdout[-500:]}{ran.stderr[-500:]}")
    return ran.returncode == 0


def main(numbers: Sequence[int] = ()) -> int:
    """Try the faults; 0 when the suite passes without one and fails with each."""
    if not survives(None):
        print("the suite fails without any fault")
        return 1
    left = 0
    for number in numbers or range(len(MUTANTS)):
        mutant = MUTANTS[number]
        alive = survives(mutant)
        left += alive
        print(f"{number:3} {'SURVIVES' if alive else 'caught  '} {mutant.file}: {mutant.what}")
    print(f"{len(numbers) or len(MUTANTS)} faults, {left} not noticed")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]]))
