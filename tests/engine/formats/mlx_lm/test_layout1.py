"""The older layout: scalars as strings, only used rows, one offset lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.formats import Options, Report, read_source
from engine.formats.source import Source
from tests.helpers.prompt_files import archive, layout1, rows


def read(data: bytes) -> Report:
    return read_source(Source(Path("made"), data, len(data)), Options()).report


def codes(report: Report) -> list[str]:
    return [code.value for code in report.codes]


def test_rows_are_the_offset() -> None:
    report = read(layout1([("KVCache", [rows(9), rows(9)], [])] * 2, {"model": "tiny"}))
    assert codes(report) == []
    assert report.sequences[0].run == (0, 9)
    assert report.fact("model") == "tiny"
    assert report.fact("layout") == 1


@pytest.mark.parametrize(
    "infos",
    [["4", "16", "30", "9"], ["4", "16", "256", "30", "9"]],
    ids=["four strings", "five strings"],
)
def test_rings(infos: list[str]) -> None:
    """keep, max_size, (step,) offset, idx."""
    report = read(layout1([("RotatingKVCache", [rows(16), rows(16)], infos)]))
    assert codes(report) == []
    part = report.sequences[0].parts[0]
    assert part.run == (0, 30)
    assert part.evicted == ((4, 18),)


def test_quantised_rows() -> None:
    packed, scales = np.ones((1, 2, 7, 8), "<u4"), np.ones((1, 2, 7, 1), "<f2")
    tensors = {
        f"0.{side}.{i}": array
        for side in (0, 1)
        for i, array in enumerate((packed, scales, scales))
    }
    infos = {"0.0.0": "7", "0.0.1": "32", "0.0.2": "8"}
    data = archive(tensors, {**infos, "2.0": "QuantizedKVCache"})
    report = read(data)
    assert codes(report) == []
    assert report.sequences[0].run == (0, 7)


def test_a_chunked_cache_has_an_upper_bound_only() -> None:
    chunked = ("ChunkedKVCache", [rows(20), rows(20)], ["16", "4"])
    plain = ("KVCache", [rows(22), rows(22)], [])
    report = read(layout1([chunked, plain]))
    assert codes(report) == []
    assert report.unproved == ("layer.0",)
    assert report.sequences[0].parts[0].run is None
    beyond = ("KVCache", [rows(25), rows(25)], [])
    assert codes(read(layout1([chunked, beyond]))) == ["torn"]


@pytest.mark.parametrize("kind", ["ArraysCache", "MambaCache"])
def test_recurrent_states(kind: str) -> None:
    state = [np.ones((1, 3, 4), "<f2"), np.ones((1, 2, 2), "<f4")]
    report = read(layout1([(kind, state, []), ("KVCache", [rows(5), rows(5)], [])]))
    assert codes(report) == []
    assert report.unproved == ("layer.0",)


def test_batches() -> None:
    padding, offsets = np.array([3, 0], "<i4"), np.array([6, 9], "<i4")
    state = [rows(9, 2), rows(9, 2), offsets, padding]
    report = read(layout1([("BatchKVCache", state, [])]))
    assert codes(report) == []
    assert [own.run for own in report.sequences] == [(0, 6), (0, 9)]
    wrong = [rows(9, 2), rows(9, 2), np.array([7, 9], "<i4"), padding]
    assert codes(read(layout1([("BatchKVCache", wrong, [])]))) == ["inconsistent"]


@pytest.mark.parametrize(("rotated", "first"), [("True", 12), ("False", 12)])
def test_batched_rings(rotated: str, first: int) -> None:
    state = [rows(8), rows(8), np.array([20], "<i4"), np.array([-12], "<i4")]
    report = read(layout1([("BatchRotatingKVCache", state, ["8", "20", "8", rotated])]))
    assert codes(report) == []
    assert report.sequences[0].run == (first, 20)


def test_lists_of_caches() -> None:
    tensors = {f"0.{child}.{i}": rows(6) for child in (0, 1) for i in (0, 1)}
    metadata = {
        "0.0.0.0": "KVCache",
        "0.0.0.1": "RotatingKVCache",
        "0.0.1.0": "",
        "0.0.1.1.0": "0",
        "0.0.1.1.1": "8",
        "0.0.1.1.2": "6",
        "0.0.1.1.3": "6",
        "2.0": "CacheList",
    }
    report = read(archive(tensors, metadata))
    assert codes(report) == []
    assert [part.name for part in report.sequences[0].parts] == ["layer.0.0", "layer.0.1"]


def test_numbers_that_are_none() -> None:
    for infos in (["4", "16", "x", "9"], ["4"], ["4", "16", "9" * 30, "9"]):
        report = read(layout1([("RotatingKVCache", [rows(16), rows(16)], infos)]))
        assert codes(report) == ["inconsistent"], infos


def test_ten_layers_are_in_the_order_of_numbers() -> None:
    report = read(layout1([("KVCache", [rows(3), rows(3)], [])] * 12))
    names = [part.name for part in report.sequences[0].parts]
    assert names == [f"layer.{number}" for number in range(12)]


def test_tensors_without_a_class() -> None:
    data = archive({"0.0": rows(3), "0.1": rows(3), "7.0": rows(3)}, {"0.0": "", "2.0": "KVCache"})
    assert codes(read(data)) == ["inconsistent"]


def test_a_class_without_tensors_is_missing() -> None:
    data = archive({"0.0": rows(3), "0.1": rows(3)}, {"2.0": "KVCache", "2.1": "KVCache"})
    report = read(data)
    assert codes(report) == ["missing"]
    assert report.findings[0].part == "layer.1"


def test_values_that_are_absent_are_missing() -> None:
    data = archive({"0.0": rows(3)}, {"0.0": "", "2.0": "KVCache"})
    assert codes(read(data)) == ["missing"]
