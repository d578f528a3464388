"""Preferences as values: budgets read and written, backends of a machine, what differs."""

from __future__ import annotations

import pytest

from app.models.preferences import (
    PreferenceError,
    Preferences,
    backend_choices,
    budget_words,
    differences,
    parse_budget,
    rounded_words,
)

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("", None),
        ("   ", None),
        ("512 MiB", 536_870_912),
        ("8GiB", 8_589_934_592),
        ("8 gib", 8_589_934_592),
        ("1.5 GiB", 1_610_612_736),
        ("2,048 KiB", 2_097_152),
        ("1 MiB", 1_048_576),
        ("16 GiB", 17_179_869_184),
    ],
)
def test_a_budget_is_read_with_its_unit(text: str, n_bytes: int | None) -> None:
    assert parse_budget(text, 16 * GIB) == n_bytes


@pytest.mark.parametrize("text", ["lots", "512", "-1 GiB", "8 GB", "GiB", "1.2.3 GiB", "8 GiB x"])
def test_what_is_no_size_gets_one_sentence(text: str) -> None:
    with pytest.raises(PreferenceError) as caught:
        parse_budget(text, 16 * GIB)
    assert str(caught.value) == (
        f"Byte budget: expected a size such as 512 MiB or 8 GiB, or nothing, given {text!r}"
    )


@pytest.mark.parametrize("text", ["0 GiB", "1023 KiB", "16385 MiB", "17 GiB", "99999999999 TiB"])
def test_a_budget_outside_the_memory_names_both_ends(text: str) -> None:
    with pytest.raises(PreferenceError, match=r"expected 1 MiB to 16 GiB, the memory of this"):
        parse_budget(text, 16 * GIB)


@pytest.mark.parametrize("text", ["1.1 MiB", "1.37 GiB", "1,025 KiB", "3 GiB", "1536 MiB"])
def test_what_is_shown_reads_back_as_the_same_number(text: str) -> None:
    n_bytes = parse_budget(text, 16 * GIB)
    assert n_bytes is not None
    assert parse_budget(budget_words(n_bytes), 16 * GIB) == n_bytes


def test_budgets_in_words() -> None:
    assert budget_words(None) == ""
    assert budget_words(512 * MIB) == "512 MiB"
    assert budget_words(1536 * MIB) == "1,536 MiB"
    assert rounded_words(12_638_257_152) == "11.7 GiB"
    assert rounded_words(16 * GIB) == "16 GiB"


def test_backends_that_a_machine_lacks_say_why() -> None:
    found = [
        ("metal", False, "needs macOS on Apple silicon"),
        ("cuda", True, "MLX on a GPU"),
        ("cpu", True, "MLX on the CPU"),
    ]
    choices = {choice.name: choice for choice in backend_choices(found)}
    assert list(choices) == ["auto", "cpu", "metal", "cuda"]
    assert choices["metal"].words == "Metal (needs macOS on Apple silicon)"
    assert choices["auto"].words == "Automatic (here: CUDA)"
    assert [name for name, choice in choices.items() if choice.reason] == ["metal"]


def test_where_nothing_was_found_only_automatic_is_left() -> None:
    choices = backend_choices([("backend", False, "ImportError: no mlx")])
    assert [choice.name for choice in choices if not choice.reason] == ["auto"]
    assert choices[0].words == "Automatic"


def test_differences_are_the_fields_that_changed() -> None:
    old = Preferences(chunk=7)
    assert differences(old, Preferences(chunk=7)) == {}
    assert differences(old, Preferences(scheme="dark", budget_bytes=GIB)) == {
        "scheme": "dark",
        "chunk": 5,
        "budget_bytes": GIB,
    }
