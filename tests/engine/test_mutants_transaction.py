"""The planted faults of `mutants_transaction` are noticed; all of them in the long profile."""

from __future__ import annotations

import pytest

from tests.engine.mutants_transaction import MUTANTS, ROOT, Planted, survives

NAMES = [fault.mutant.what for fault in MUTANTS]


def test_there_are_enough_faults_and_each_is_another() -> None:
    assert len(MUTANTS) >= 20
    assert len(set(NAMES)) == len(MUTANTS)


@pytest.mark.parametrize("fault", MUTANTS, ids=NAMES)
def test_each_fault_can_still_be_planted(fault: Planted) -> None:
    source = (ROOT / "engine" / fault.mutant.file).read_text()
    planted = fault.mutant.planted(source)
    assert planted != source
    compile(planted, fault.mutant.file, "exec")
    assert fault.tests


def test_a_copy_passes_without_a_fault_and_fails_with_one() -> None:
    fault = next(f for f in MUTANTS if f.mutant.file == "lineage.py")
    assert survives(None, fault.tests)
    assert not survives(fault)


@pytest.mark.long
def test_the_tests_pass_in_a_copy_without_a_fault() -> None:
    assert survives(None, sorted({test for fault in MUTANTS for test in fault.tests}))


@pytest.mark.long
@pytest.mark.parametrize("fault", MUTANTS, ids=NAMES)
def test_each_fault_is_noticed(fault: Planted) -> None:
    assert not survives(fault)
