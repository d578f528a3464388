"""Damaged files of every format: always a report, never an exception, in bounded time and memory.

Mutants are read in child processes: a limit on their address space and on processor time a file
makes a blow-up a failure. A failing one is repeated with the seed and number that are printed.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.hostile import CASES

ROOT = Path(__file__).parents[3]
IN_CI, LONG, A_CHILD = 1_500, 100_000, 5_000


def read_mutants(seed: int, count: int, start: int) -> dict[str, Any]:
    program = [sys.executable, "-W", "error", "-m", "tests.helpers.mutate"]
    command = [*program, str(seed), str(count), str(start)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"seed {seed} from {start}: {done.returncode} {done.stderr[-2000:]}"
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a child are Linux's")
def test_every_mutant_ends_in_a_report(long_profile: bool) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    total = LONG if long_profile else IN_CI
    verdicts: dict[str, int] = {}
    slowest, grown = 0.0, 0
    for start in range(0, total, A_CHILD):
        seen = read_mutants(seed, min(A_CHILD, total - start), start)
        failures = seen["failures"]
        print(f"seed {seed} from {start}: {json.dumps(seen, indent=1)[:6000]}")
        assert not failures, f"seed {seed}, mutant {failures[0]['number']}: {failures[0]['error']}"
        for verdict, count in seen["verdicts"].items():
            verdicts[verdict] = verdicts.get(verdict, 0) + count
        slowest, grown = max(slowest, seen["slowest_s"]), max(grown, seen["grown_mb"])
    print(f"seed {seed}: {total} mutants, slowest {slowest} s, {grown} MB more, {verdicts}")
    assert sum(verdicts.values()) == total
    # the damage is of many kinds, and some of it can't be seen
    assert len(verdicts) >= 8
    assert verdicts["ok"] > 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a child are Linux's")
@pytest.mark.parametrize("name", CASES)
def test_files_that_are_made_to_cost(name: str) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.helpers.hostile", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name}: {done.returncode} {done.stderr[-2000:]}"
    assert isinstance(json.loads(done.stdout), str)
