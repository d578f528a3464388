"""Tensors of a transformers cache: names, classes, windows, tears."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.formats import Options, Report, open_file, read_source
from engine.formats.source import Source
from tests.helpers.prompt_files import archive, rows


def read(data: bytes) -> Report:
    return read_source(Source(Path("made"), data, len(data)), Options()).report


def codes(report: Report) -> list[str]:
    return [code.value for code in report.codes]


def cache(
    lengths: list[int], names: str = "layers.{}.{}", words: tuple[str, str] = ("keys", "values")
) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    return {
        names.format(number, word): rows(length)
        for number, length in enumerate(lengths)
        for word in words
    }


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("layers.{}.{}", ("keys", "values")),
        ("{}.{}", ("key", "value")),
        ("layer_{}_{}", ("k", "v")),
        ("past_key_values.{}.{}", ("0", "1")),
        ("past_key_values.{}.{}", ("key", "value")),
        ("cache/layers/{}/{}", ("keys", "values")),
    ],
)
def test_names_that_programs_choose(names: str, words: tuple[str, str]) -> None:
    report = read(archive(cache([6, 6], names, words), {}))
    assert report.format == "hf-transformers"
    assert codes(report) == []
    assert report.sequences[0].run == (0, 6)


def test_key_cache_names() -> None:
    tensors = {f"{side}_cache.{number}": rows(5) for side in ("key", "value") for number in (0, 1)}
    assert read(archive(tensors, {})).sequences[0].run == (0, 5)


def test_a_failed_pass_leaves_the_cache_torn() -> None:
    report = read(archive(cache([16, 16, 10, 10]), {}))
    assert codes(report) == ["torn"]
    assert report.sequences[0].usable == (0, 10)


def test_windows_by_their_lengths() -> None:
    """The measured example of the format page."""
    tensors = {**cache([14, 7, 8])}
    metadata = {
        "layers.0.class": "DynamicLayer",
        "layers.1.class": "transformers.cache_utils.DynamicSlidingWindowLayer",
        "layers.1.cumulative_length": "14",
        "layers.2.class": "StaticSlidingWindowLayer",
        "layers.2.cumulative_length": "8",
        "layers.2.cumulative_length_int": "14",
    }
    report = read(archive(tensors, metadata))
    assert codes(report) == []
    assert [part.run for part in report.sequences[0].parts] == [(0, 14), (7, 14), (6, 14)]


def test_static_rows_beyond_the_length_are_zero() -> None:
    array = rows(16)
    array[:, :, 9:] = 0
    tensors = {"layers.0.keys": array, "layers.0.values": array}
    metadata = {"layers.0.class": "StaticLayer", "layers.0.cumulative_length": "9"}
    report = read(archive(tensors, metadata))
    assert codes(report) == []
    assert report.sequences[0].run == (0, 9)


def test_a_length_tensor_counts() -> None:
    tensors = {**cache([16]), "layers.0.cumulative_length": np.array(9, "<i4")}
    assert read(archive(tensors, {})).sequences[0].run == (0, 9)


def test_a_static_window_without_its_exact_length_is_unproved() -> None:
    metadata = {
        "layers.1.class": "StaticSlidingWindowLayer",
        "layers.1.cumulative_length": "8",
    }
    report = read(archive(cache([14, 8]), metadata))
    assert codes(report) == []
    assert report.unproved == ("layer.1",)


def test_recurrent_layers_are_unproved() -> None:
    tensors = {**cache([5]), "layers.1.conv_states": rows(4), "layers.1.recurrent_states": rows(4)}
    report = read(archive(tensors, {}))
    assert codes(report) == []
    assert report.unproved == ("layer.1",)


def test_a_quantised_layer_is_undecodable() -> None:
    report = read(archive(cache([5, 5]), {"layers.1.class": "QuantoQuantizedLayer"}))
    assert codes(report) == ["undecodable"]


def test_rows_that_are_not_finite() -> None:
    tensors = cache([6, 6])
    tensors["layers.1.values"][0, 1, 4, 2] = np.inf
    report = read(archive(tensors, {}))
    assert codes(report) == ["non_finite"]
    assert report.sequences[0].parts[1].non_finite == ((4, 5),)


def test_left_padding_is_said_to_be_unknown() -> None:
    assert "padding" in " ".join(read(archive(cache([5]), {})).fact("remarks"))


def test_model_weights_are_no_cache() -> None:
    tensors = {"model.layers.0.self_attn.k_proj.weight": rows(4)[0, 0]}
    report = read(archive(tensors, {"format": "pt"}))
    assert (report.verdict, report.format) == ("unreadable", None)


def test_shorter_layers_before_longer_ones_are_windows_and_unproved() -> None:
    report = read(archive(cache([7, 7, 14, 7]), {}))
    assert codes(report) == []
    assert report.unproved == ("layer.0", "layer.1", "layer.3")
    assert report.sequences[0].run == (0, 14)
    assert any("windows" in remark for remark in report.fact("remarks"))


SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "transformers"


@pytest.mark.parametrize(
    ("name", "window"),
    [("dynamic-exported", (7, 14)), ("static-exported", (6, 14)), ("dynamic-bare", None)],
)
def test_caches_that_transformers_made(name: str, window: tuple[int, int] | None) -> None:
    """14 tokens, window 8: dynamic layers keep 7 rows, static ones 8, rolled into order."""
    with open_file(SAMPLES / f"{name}.safetensors") as opened:
        report = opened.report
    assert report.verdict == "ok"
    parts = report.sequences[0].parts
    assert [part.run for part in parts] == [window] * 5 + [(0, 14)]
    assert len(report.unproved) == (0 if window else 5)


@pytest.mark.parametrize("word", ["0" * 7 + "9" * 5000, "0000009999999999", "9" * 5000, "4096"])
def test_numbers_that_are_no_layer(word: str) -> None:
    """However long: the layers beside it are read, and nothing ends in a traceback."""
    tensors = {f"{side}_cache.{number}": rows(5) for side in ("key", "value") for number in (0, 1)}
    report = read(archive({**tensors, f"key_cache.{word}": rows(5)}, {}))
    assert report.format == "hf-transformers"
    assert {part.name for own in report.sequences for part in own.parts} == {"layer.0", "layer.1"}
