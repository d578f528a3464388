"""The planted faults of `tests/mutants_rules.py` are noticed; all of them in the long profile."""

from __future__ import annotations

import pytest

from tests.mutants_rules import MUTANTS, NEAREST, ROOT, Mutant, survives


def test_there_are_enough_faults_and_each_is_another() -> None:
    assert len(MUTANTS) >= 20
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_each_fault_can_still_be_planted(mutant: Mutant) -> None:
    source = (ROOT / "engine" / mutant.file).read_text()
    planted = mutant.planted(source)
    assert planted != source
    compile(planted, mutant.file, "exec")


def test_a_copy_passes_without_a_fault_and_fails_with_one() -> None:
    nearest = NEAREST[MUTANTS[0].file]
    assert survives(None, nearest)
    assert not survives(MUTANTS[0], nearest)


@pytest.mark.long
def test_the_whole_suite_passes_in_a_copy_without_a_fault() -> None:
    assert survives(None)


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_each_fault_is_noticed(mutant: Mutant) -> None:
    assert not survives(mutant)
