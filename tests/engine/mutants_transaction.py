"""Plants faults in a copy of the transaction's code and shows that the suite notices each of them.

Run it as `python -m tests.engine.mutants_transaction [NUMBER...]`; it exits 1 when a fault
survives. Each fault names the few tests that are there to notice it, so a round is fast.
"""

# ruff: noqa: E501 - lines of source as they stand in the files

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants_rules import PYTEST, Mutant

ROOT = Path(__file__).parents[2]
CARRIED = (
    "engine",
    "metal",
    "resources/__init__.py",
    "resources/models/qwen4exp-tiny",
    "tests/conftest.py",
    "tests/__init__.py",
    "tests/helpers",
    "tests/engine",
    "tests/data/golden/qwen4exp-tiny",
    "tests/data/golden/qwen4exp-mixed",
    "pyproject.toml",
)
REAL = "tests/engine/test_real_failures.py::"
MATRIX = "tests/engine/test_failure_matrix.py::"
FLIP = "tests/engine/test_flip.py::"
FILES = "tests/engine/test_session_file.py::"
DAMAGE = "tests/engine/test_session_file_damage.py::"
FAST = "tests/engine/test_fast_values.py::"
BYTES = "tests/engine/test_admission.py::"
LINES = "tests/engine/test_lineage.py::"
LIVES = "tests/engine/test_lives.py::"
EXACT = "tests/engine/test_exactness.py::"
LIFE = f"{LIVES}test_every_published_op_can_be_undone"
EVICT = f"{EXACT}test_evict_front_by_its_definition"
CATCH_UP = f"{MATRIX}test_failures_while_catching_up_after_a_failure"


@dataclass(frozen=True)
class Planted:
    """A fault, and the tests that notice it."""

    mutant: Mutant
    tests: tuple[str, ...]


def planted(what: str, file: str, old: str, new: str, *tests: str) -> Planted:
    return Planted(Mutant(what, file, old, new), tests)


MUTANTS = (
    planted(
        "only the visibly changed buffer is rolled back",
        "bank.py",
        "for owner in self.positional():\n            owner.roll_back()",
        'for owner in (o for o in self.positional() if o.name == "qsa.kv"):\n'
        "            owner.roll_back()",
        f"{REAL}test_the_first_chunk_that_fails_before_its_evaluation_leaves_nothing",
    ),
    planted(
        "what a failed attempt wrote is not noted",
        "bank.py",
        "self.touched.merge(self.changes)\n        self.changes = Changes()",
        "self.changes = Changes()",
        CATCH_UP,
    ),
    planted(
        "old bytes are copied back after a command that did not finish",
        "bank.py",
        "        if self.spoiled:\n            for owner in self.owners.values():\n"
        "                cast(Any, owner).remake(public.owners[owner.name])\n        else:\n",
        "        if True:\n",
        f"{REAL}test_nothing_of_a_bank_whose_evaluation_failed_is_used_again",
    ),
    planted(
        "a bank whose evaluation failed is used again",
        "bank.py",
        "            self.spoiled = True\n            drain()",
        "            drain()",
        f"{REAL}test_a_weight_whose_file_was_cut",
    ),
    planted(
        "a table that the device contradicted is used again",
        "transaction.py",
        "                self.private.spoiled = True\n",
        "                pass\n",
        f"{REAL}test_the_kernel_finds_a_hole_before_sparse_planning",
    ),
    planted(
        "one owner is published before the flip",
        "transaction.py",
        "        self.private.txn = self.number",
        "        self.private.txn = self.number\n"
        "        self.session.pair.public_bank.history.set_value(self.private.history.value)",
        f"{FLIP}test_nothing_public_changes_in_a_failed_chunk",
    ),
    planted(
        "the flip changes something else as well",
        "bank.py",
        "        self.public = 1 - self.public",
        "        self.public = 1 - self.public\n        self.public_bank.touched = Changes([(0, 1)])",
        f"{FLIP}test_a_flip_changes_one_integer_and_nothing_else",
    ),
    planted(
        "a catch-up forgets the last row of what changed",
        "owners/positional.py",
        "for cell, count in changes.cells:",
        "for cell, count in ((c, n - 1) for c, n in changes.cells):",
        "tests/engine/test_bank.py",
    ),
    planted(
        "an owner is missing in the catch-up",
        "bank.py",
        "            for owner in self.owners.values():\n"
        "                owner.catch_up(public.owners[owner.name], lacking)",
        '            for owner in (o for o in self.owners.values() if o.name != "routes"):\n'
        "                owner.catch_up(public.owners[owner.name], lacking)",
        "tests/engine/test_bank.py",
    ),
    planted(
        "hashes of blocks are kept although their rows changed",
        "owners/positional.py",
        "        return changes.dirty[look.key]",
        "        return look.consumed",
        f"{EXACT}test_rewind_and_replay_equals_fresh",
        LIFE,
        f"{LIVES}test_a_random_life_is_the_same_as_fresh",
    ),
    planted(
        "a bank that is sealed again keeps its old digests",
        "bank.py",
        "        self.sealed = ()  # a bank filled from a file was sealed as something else before\n",
        "",
        f"{FILES}test_other_sessions_loaded_one_after_the_other",
    ),
    planted(
        "a checkpoint is used although something was evicted after it",
        "derive.py",
        "if c <= count and (c == count or c >= moved)]",
        "if c <= count]",
        "tests/engine/test_derive.py",
    ),
    planted(
        "a lineage is not clipped",
        "work.py",
        "bank.tokens.of(work.key).clipped(work.count))",
        "bank.tokens.of(work.key))",
        f"{LINES}test_a_way_back_over_a_shift_replays_at_the_old_positions",
    ),
    planted(
        "a clipped lineage keeps starts of what was dropped",
        "lineage.py",
        '        while count == self.evicted and events[-1].kind != "evict":\n'
        "            events = events[:-1]\n",
        "",
        f"{LINES}test_a_way_back_to_nothing_forgets_later_starts_and_shifts",
    ),
    planted(
        "a replay runs over a shift in one piece",
        "derive.py",
        "replay=True, moves=moves)",
        "replay=True)",
        f"{LINES}test_a_way_back_over_a_shift_replays_at_the_old_positions",
    ),
    planted(
        "groups are not made anew when the anchor moves",
        "work.py",
        "            if effect.n % bank.history.value.group_size:\n                self.anchors.add(key)",
        "            if effect.n < 0:\n                self.anchors.add(key)",
        EVICT,
    ),
    planted(
        "only the last stage is looked at for values that are not finite",
        "work.py",
        "            for flag in flags:\n",
        "            for flag in flags[-1:]:\n",
        f"{REAL}test_a_bad_weight_names_stage_and_owner",
    ),
    planted(
        "fast mode sums the logits only",
        "work.py",
        "        probed = stage.probed if self.txn.fast else stage.floats\n",
        '        probed = stage.probed if not self.txn.fast or stage.name == "head" else ()\n',
        f"{FAST}test_a_bad_value_is_named_with_its_stage",
    ),
    planted(
        "a sigmoid swallows an infinite gate",
        "graph/__init__.py",
        '            poison=p + "q",\n            probed=projected,\n',
        '            poison=p + "q",\n            probed=(projected[0], *projected[2:]),\n',
        f"{FAST}test_a_bad_value_is_named_with_its_stage",
    ),
    planted(
        "only the largest piece of one evaluation is admitted",
        "admission.py",
        "        if piece.fence or at_once is None:\n",
        "        if True:\n",
        f"{BYTES}test_the_estimate_covers_a_chunk_of_many_pieces",
    ),
    planted(
        "the old table beside the new one is not admitted",
        "owners/positional.py",
        "            cells += 2 * new - n if new > n else 0\n",
        "            cells += new - n if new > n else 0\n",
        f"{BYTES}test_the_estimate_is_an_upper_bound_of_the_real_peak",
    ),
    planted(
        "scores of long histories are not admitted",
        "footprint.py",
        "    return FLOAT_BYTES * scores + SORT_BYTES * each\n",
        "    return FLOAT_BYTES * each\n",
        f"{BYTES}test_the_estimate_is_an_upper_bound_of_the_real_peak",
    ),
    planted(
        "groups made anew are not admitted",
        "footprint.py",
        "    return n_live * (3 * keys + STATUS_BYTES)\n",
        "    return 0 * (3 * keys + STATUS_BYTES)\n",
        f"{BYTES}test_the_estimate_covers_lifecycle_ops",
    ),
    planted(
        "rows that compaction moves are not admitted",
        "demand.py",
        "    return 2 * sum(n for _, _, n in moves) * txn.private.cell_bytes()\n",
        "    return 0 * sum(n for _, _, n in moves) * txn.private.cell_bytes()\n",
        f"{BYTES}test_the_estimate_covers_compaction",
    ),
    planted(
        "large tables are copied for every piece",
        "work.py",
        "wanted = piece.fence or (txn.fast and txn.at_once is None)",
        "wanted = piece.fence",
        f"{BYTES}test_pieces_do_not_copy_large_tables",
    ),
    planted(
        "compaction flips before its tables are evaluated",
        "work.py",
        '        self.fence("write" if self.flags else "publish", *self.bank.prepare())\n',
        "        rows = self.bank.prepare()\n"
        "        if rows or self.flags or self.status or self.bank.touched.cells:\n"
        '            self.fence("write" if self.flags else "publish", *rows)\n',
        "tests/engine/test_evaluated.py",
    ),
    planted(
        "tables are taken for as small as their history",
        "transaction.py",
        "max(self.applied.history.n_cells, *cells)",
        "self.applied.history.n_cells",
        f"{BYTES}test_tables_are_as_large_as_they_once_became",
    ),
    planted(
        "only one sequence of a batch keeps its new states",
        "admission.py",
        "sum(fixed + angle_bytes(model.config, n_live) for n_live in reach.values())",
        "fixed",
        f"{BYTES}test_the_estimate_covers_a_batch_of_new_sequences",
    ),
    planted(
        "checkpoints are not admitted",
        "admission.py",
        "    return sum(min(n, kept) for n in new.values()) * each\n",
        "    return 0 * sum(min(n, kept) for n in new.values()) * each\n",
        f"{BYTES}test_checkpoints_are_admitted",
    ),
    planted(
        "the first wrong group is counted from the stretch, not from the run",
        "judging.py",
        'f"group {check.first_group + part}"',
        'f"group {part}"',
        f"{REAL}test_the_kernel_finds_a_hole_before_sparse_planning",
    ),
    planted(
        "status words are not read in fast mode",
        "work.py",
        "        for name, check in checks:\n",
        "        for name, check in checks if not self.txn.fast else ():\n",
        f"{REAL}test_the_kernel_finds_a_hole_before_sparse_planning",
    ),
    planted(
        "the caller's buffer is written before the flip",
        "engine.py",
        "            record = self.finish() if refused",
        "            if sink is not None:\n                sink[:1] = 0\n"
        "            record = self.finish() if refused",
        f"{FLIP}test_the_sentinel_of_the_caller_is_written_after_the_flip",
    ),
    planted(
        "heads of a state are taken for rows of tokens",
        "judging.py",
        "by_token = name not in stage.whole",
        "by_token = True",
        "tests/engine/test_judging.py",
    ),
    planted(
        "what is dropped is noted when all of it is gone",
        "bank.py",
        "        self.changes.touch(key, 0)\n        for owner in self.owners.values():\n"
        "            owner.drop(key)\n",
        "        for owner in self.owners.values():\n            owner.drop(key)\n"
        "        self.changes.touch(key, 0)\n",
        "tests/engine/test_interrupts.py",
    ),
    planted(
        "how far an owner is is not compared with the lineage",
        "owner.py",
        "if mark != Mark(look.consumed, look.id_hash):",
        "if mark != Mark(look.consumed, look.id_hash) and mark.consumed < 0:",
        f"{REAL}test_a_broken_invariant_stops_publishing_and_keeps_the_state",
    ),
    planted(
        "bytes are not admitted",
        "transaction.py",
        "        admit(demand(self), self.session_bytes(), self.session.budget_bytes)\n",
        "",
        f"{REAL}test_a_real_budget_refuses_before_anything_is_allocated",
    ),
    planted(
        "room of a failed reserve is counted",
        "owners/positional.py",
        "            self.n_alloc = min((t.shape[0] for t in self.tables.values()), "
        "default=self.n_alloc)\n",
        "",
        f"{REAL}test_room_that_was_made_in_a_failed_reserve_is_not_counted",
    ),
    planted(
        "a way back keeps the recurrent state of where it came from",
        "work.py",
        "owner.replace(work.key, values.get(owner.name, {}))",
        'owner.replace(work.key, values.get(owner.name, {})) if owner.name != "gdn.conv" else None',
        f"{EXACT}test_rewind_and_replay_equals_fresh",
    ),
    planted(
        "a restored file is not compared with its digests",
        "session_file.py",
        '            if self.about["digests"].get(name) != digest:',
        "            if not digest:",
        f"{DAMAGE}test_a_tensor_whose_numbers_were_changed",
    ),
    planted(
        "a saved session is written in place",
        "atomic.py",
        "        yield Path(name)\n",
        "        yield path\n",
        f"{FILES}test_a_save_that_is_killed_leaves_the_old_file_or_the_new_one",
        f"{FILES}test_a_session_comes_back_whole",
    ),
)


def survives(fault: Planted | None, suite: Sequence[str] = ()) -> bool:
    """True when the tests pass in a copy with the fault planted (None: no fault)."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__", "formats", "protect")
        for name in CARRIED:
            source, target = ROOT / name, copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=ignored)
            elif source.exists():
                shutil.copy(source, target)
        if fault is None:
            return passes(copy, suite)
        file = copy / "engine" / fault.mutant.file
        file.write_text(fault.mutant.planted(file.read_text()))
        return passes(copy, suite or fault.tests)


def passes(folder: Path, suite: Sequence[str]) -> bool:
    """True when these tests pass there. Raises: RuntimeError when they did not run."""
    command = [sys.executable, *PYTEST, *suite]
    try:
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return False  # a suite that hangs is noticed
    # a copy that crashes is noticed, too: undefined arrays can do that
    if ran.returncode not in (0, 1, 2) and ran.returncode > 0:
        raise RuntimeError(f"the suite did not run: {ran.stdout[-500:]}{ran.stderr[-500:]}")
    return ran.returncode == 0


def main(numbers: Sequence[int] = ()) -> int:
    """Try the faults; 0 when the tests pass without one and fail with each."""
    if not numbers and not survives(None, sorted({t for p in MUTANTS for t in p.tests})):
        print("the tests fail without any fault")
        return 1
    left = 0
    for number in numbers or range(len(MUTANTS)):
        alive = survives(MUTANTS[number])
        left += alive
        told = MUTANTS[number].mutant
        print(
            f"{number:3} {'SURVIVES' if alive else 'caught  '} {told.file}: {told.what}", flush=True
        )
    print(f"{len(numbers) or len(MUTANTS)} faults, {left} not noticed")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]]))
