"""Row norms of every cache type, against the definitions of ggml's blocks in plain Python."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest

from engine.formats import Opened, Options, read_source
from engine.formats.source import Source
from tests.helpers.llama_files import (
    TYPE_BYTES,
    Cell,
    attention,
    recurrent,
    sequence_file,
    text,
)

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
N_CELLS, WIDTH = 5, 64


def halves(raw: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(raw) // 2}e", raw))


def values_of(raw: bytes, type_id: int) -> list[float]:
    """The values of one block, one after another."""
    if type_id == 0:
        return list(struct.unpack("<f", raw))
    if type_id == 1:
        return halves(raw)
    if type_id == 30:
        return [struct.unpack("<f", b"\0\0" + raw)[0]]
    if type_id == 8:
        return [halves(raw[:2])[0] * own for own in struct.unpack("<32b", raw[2:])]
    scale = halves(raw[:2])[0]
    shift = halves(raw[2:4])[0] if type_id in (3, 7) else 0.0
    head = {2: 2, 3: 4, 6: 2, 7: 4, 20: 2}[type_id]
    bits = 0
    if type_id in (6, 7):
        bits = struct.unpack("<I", raw[head : head + 4])[0]
        head += 4
    found = []
    for i in range(32):
        byte = raw[head + i % 16]
        code = byte & 15 if i < 16 else byte >> 4
        code |= ((bits >> i) & 1) << 4
        if type_id == 20:
            found.append(scale * IQ4[code])
        else:
            found.append(scale * (code - {2: 8, 6: 16}.get(type_id, 0)) + shift)
    return found


def finite(data: bytes, type_id: int) -> bytes:
    """Payload bytes whose scales are small finite numbers."""
    per, size = TYPE_BYTES[type_id]
    if per == 1:
        return data
    out = bytearray(data)
    for at in range(0, len(out), size):
        struct.pack_into("<e", out, at, 0.25 + (at % 7) / 8)
        if type_id in (3, 7):
            struct.pack_into("<e", out, at + 2, -0.5)
    return bytes(out)


@pytest.mark.parametrize("type_id", list(TYPE_BYTES))
def test_norms_follow_the_definition(type_id: int) -> None:
    per, size = TYPE_BYTES[type_id]
    row = WIDTH // per * size
    data = bytearray(
        sequence_file(attention([text(range(N_CELLS))], key=type_id, value=None, layers=1))
    )
    start = len(data) - row * N_CELLS
    data[start:] = finite(bytes(data[start:]), type_id)
    opened = read_source(Source(Path("made"), bytes(data), len(data)), Options())
    assert opened.report.verdict == "ok"
    norms = opened.row_norms("attention")
    assert norms.names == ("layer 0 K",)
    for cell in range(N_CELLS):
        raw = bytes(data[start + cell * row : start + (cell + 1) * row])
        values = [
            value for at in range(0, row, size) for value in values_of(raw[at : at + size], type_id)
        ]
        expected = math.sqrt(math.fsum(value * value for value in values))
        if math.isfinite(expected):
            assert norms.norms[0, cell] == pytest.approx(expected, rel=1e-5)
        else:
            assert not np.isfinite(norms.norms[0, cell])


def test_transposed_values_have_the_norms_of_their_columns() -> None:
    data = sequence_file(attention([text(range(N_CELLS))], value=0, trans=True, layers=1))
    opened = read_source(Source(Path("made"), data, len(data)), Options())
    plain = np.frombuffer(data[-4 * WIDTH * N_CELLS :], "<f4").reshape(WIDTH, N_CELLS)
    expected = np.sqrt((plain.astype(np.float64) ** 2).sum(axis=0))
    norms = opened.row_norms("attention")
    assert norms.names == ("layer 0 K", "layer 0 V")
    np.testing.assert_allclose(norms.norms[1], expected, rtol=1e-5)


def test_a_type_without_a_definition_has_no_norms() -> None:
    data = sequence_file(attention([text(range(N_CELLS))], key=144, value=144))
    opened = read_source(Source(Path("made"), data, len(data)), Options())
    assert np.isnan(opened.row_norms("attention").norms).all()


def with_payload(data: bytes) -> Opened:
    return read_source(Source(Path("made"), data, len(data)), Options(payload=True))


@pytest.mark.parametrize("trans", [False, True])
def test_rows_that_are_not_finite_are_found_when_asked_for(trans: bool) -> None:
    section = attention([text(range(10))], key=0, value=0, trans=trans, layers=2)
    data = bytearray(sequence_file(section))
    assert with_payload(bytes(data)).report.verdict == "ok"
    row = 4 * WIDTH
    start = len(data) - 10 * row  # the V block of the last layer
    at = start + (4 * (3 * 10 + 6) if trans else 6 * row + 12)
    struct.pack_into("<f", data, at, math.nan)
    assert (
        read_source(Source(Path("made"), bytes(data), len(data)), Options()).report.verdict == "ok"
    )
    report = with_payload(bytes(data)).report
    assert [code.value for code in report.codes] == ["non_finite"]
    sequence = report.sequences[0]
    assert sequence.parts[0].non_finite == ((6, 7),)
    assert sequence.usable == (0, 6)
    assert "layer 1 V" in report.reason


def test_large_finite_values_are_finite() -> None:
    data = bytearray(sequence_file(attention([text(range(3))], key=0, value=None, layers=1)))
    data[-4 * WIDTH :] = struct.pack("<f", 3e38) * WIDTH
    assert with_payload(bytes(data)).report.verdict == "ok"


def test_unknown_types_and_histories_are_not_judged() -> None:
    odd = attention([text(range(3))], key=144, value=144)
    state = recurrent([Cell(2, ())], ple=(0,))
    assert with_payload(sequence_file(odd, state)).report.verdict == "ok"
