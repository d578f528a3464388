"""Delta debugging ends at a script that is minimal by definition, not by our word."""

from __future__ import annotations

import random

import pytest

from engine.shrink import shrink


def subsequence(needle: list[int], script: tuple[int, ...]) -> bool:
    rest = iter(script)
    return all(any(step == wanted for step in rest) for wanted in needle)


def test_random_scripts_shrink_to_exactly_what_the_failure_needs() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(50):
        script = [chance.randrange(5) for _ in range(chance.randrange(1, 40))]
        needle = sorted(chance.sample(range(len(script)), chance.randrange(min(5, len(script)))))
        wanted = [script[i] for i in needle]
        found = shrink(script, lambda s, wanted=wanted: subsequence(wanted, s))
        assert list(found.steps) == wanted
        assert found.complete


def test_no_script_is_asked_about_twice() -> None:
    asked: list[tuple[int, ...]] = []

    def fails(script: tuple[int, ...]) -> bool:
        asked.append(script)
        return 7 in script

    found = shrink([1, 7, 1, 7, 2, 3] * 5, fails)
    assert found.steps == (7,)
    assert len(asked) == len(set(asked)) == found.tries


def test_steps_become_simpler_after_they_became_fewer() -> None:
    def halves(script: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [
            (*script[:i], smaller, *script[i + 1 :])
            for i, step in enumerate(script)
            for smaller in (0, step // 2, step - 1)
            if 0 <= smaller < step
        ]

    found = shrink([3, 900, 41, 5], lambda s: any(step >= 37 for step in s), halves)
    assert found.steps == (37,)


def test_a_script_that_does_not_fail_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fail"):
        shrink([1, 2, 3], lambda s: False)


def test_a_failure_without_any_step_is_found() -> None:
    assert shrink([1, 2, 3], lambda s: True).steps == ()


def test_the_limit_keeps_the_best_so_far() -> None:
    found = shrink(list(range(64)), lambda s: {0, 63} <= set(s), limit=10)
    assert not found.complete
    assert found.tries == 10
    assert {0, 63} <= set(found.steps)
    assert len(found.steps) < 64
