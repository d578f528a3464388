"""llama.cpp files made from the description: every memory kind, container, type and check."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from engine.formats import Opened, Options, read_source
from engine.formats.source import Source
from tests.helpers.llama_files import (
    Cell,
    attention,
    dsv4,
    image,
    name,
    raw_context,
    raw_sequence,
    recurrent,
    sequence_file,
    session_file,
    text,
    tokens,
)


def read(data: bytes, arch: str | None = None) -> Opened:
    return read_source(Source(Path("made"), data, len(data)), Options(architecture=arch))


def codes(opened: Opened) -> list[str]:
    return [code.value for code in opened.report.codes]


WHOLE = attention([text(range(20))])
REC = [Cell(19, ())]


@pytest.mark.parametrize("key", [0, 1, 2, 3, 6, 7, 8, 20, 30, 144])
@pytest.mark.parametrize("ext", [0, 12])
def test_every_type(key: int, ext: int) -> None:
    """The types of the page, and a number that a fork may use."""
    data = sequence_file(attention([text(range(20))], key=key, value=key, ext=ext))
    opened = read(data)
    assert codes(opened) == []
    report = opened.report
    assert report.sequences[0].run == (0, 20)
    assert report.fact("cell_ext") == (ext > 0)
    norms = opened.row_norms("attention")
    assert norms.norms.shape == (4, 20)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("value", [None, 0, 1, 30])
def test_value_layouts(trans: bool, value: int | None) -> None:
    section = attention([text(range(9))], value=value, trans=trans)
    assert codes(read(sequence_file(section))) == []


@pytest.mark.parametrize(
    ("memory", "sections"),
    [
        ("kv", [WHOLE]),
        ("kv", [attention([text(range(20))], value=None)]),
        ("kv+swa", [WHOLE, attention([text(range(12, 20))])]),
        ("kv+index", [attention([text(range(20))], value=None)] * 2),
        (
            "kv+index+swa",
            [
                attention([text(range(20))], value=None),
                attention([text(range(20))], value=None, width=32),
                attention([text(range(12, 20))]),
            ],
        ),
        ("recurrent", [recurrent(REC)]),
        ("recurrent", [recurrent(REC, s_row=0)]),
        ("recurrent", [recurrent(REC, r_row=40, s_row=40)]),
        ("hybrid", [WHOLE, recurrent(REC)]),
        ("hybrid", [attention([text(range(20))], ext=12), recurrent(REC, ple=(0,))]),
        ("hybrid+swa", [WHOLE, attention([text(range(12, 20))]), recurrent(REC)]),
        (
            "hybrid+index",
            [
                attention([text(range(20))], ext=12),
                recurrent(REC, ple=(1,)),
                attention([text(range(20))], value=None, layers=1, width=32),
            ],
        ),
        ("dsv4", [dsv4(WHOLE, attention([text(range(12, 20))]))]),
        ("dsv4", [dsv4(WHOLE, attention([text(range(12, 20))]), mode=1)]),
    ],
)
def test_every_memory_kind_of_a_nameless_file(memory: str, sections: list[bytes]) -> None:
    opened = read(sequence_file(*sections))
    assert codes(opened) == [], opened.report.reason
    assert opened.report.fact("memory") == memory
    assert opened.report.sequences[0].run in ((0, 20), (19, 20))
    assert opened.report.sequences[0].usable == opened.report.sequences[0].run


@pytest.mark.parametrize("m", [1, 2, 3, 24, 400])
@pytest.mark.parametrize(("r_row", "s_row"), [(24, 40), (24, 24), (8, 0)])
@pytest.mark.parametrize("ple", [(), (0,)])
def test_any_number_of_recurrent_layers(m: int, r_row: int, s_row: int, ple: tuple[int]) -> None:
    state = recurrent(REC, n_layer=512, m=m, r_row=r_row, s_row=s_row, ple=ple)
    opened = read(sequence_file(WHOLE, state, attention([text(range(20))], value=None)))
    assert codes(opened) == [], opened.report.reason
    assert opened.report.fact("memory") == "hybrid+index"
    names = opened.row_norms("recurrent").names
    assert len([name for name in names if name.endswith("R")]) == m
    assert len([name for name in names if name.endswith("S")]) == m
    remarks = " ".join(opened.report.fact("remarks") or ())
    assert ("R and S rows are equal" in remarks) == (r_row == s_row)


@pytest.mark.parametrize(
    ("arch", "sections"),
    [
        ("llama", [WHOLE]),
        ("gemma3", [WHOLE, attention([text(range(12, 20))])]),
        ("deepseek2", [attention([text(range(20))], value=None)]),
        ("deepseek32", [attention([text(range(20))], value=None)] * 2),
        ("minimax-m3", [WHOLE, WHOLE]),
        ("mamba", [recurrent([Cell(19, (0,))])]),
        ("lfm2", [WHOLE, recurrent([Cell(19, (0,))])]),
        (
            "qwen4exp",
            [
                attention([text(range(20))], ext=12),
                recurrent([Cell(19, (0,))], ple=(0,)),
                attention([text(range(20))], value=None),
            ],
        ),
        ("deepseek4", [dsv4(WHOLE, attention([text(range(12, 20))]))]),
        ("something-new", [WHOLE]),
    ],
)
def test_a_named_architecture_takes_its_own_list(arch: str, sections: list[bytes]) -> None:
    for data in (session_file(arch, *sections), raw_context(arch, *sections)):
        opened = read(data)
        assert codes(opened) == [], opened.report.reason
        assert opened.report.fact("arch") == arch
        assert opened.report.sequences[0].run in ((0, 20), (19, 20))


@pytest.mark.parametrize("arch", ["llama", "gemma3", "qwen4exp", "lfm2", "minimax-m3"])
def test_no_cut_of_a_named_file_is_accepted(arch: str) -> None:
    sections = {
        "llama": [WHOLE],
        "gemma3": [WHOLE, attention([text(range(12, 20))])],
        "qwen4exp": [
            attention([text(range(20))], ext=12),
            recurrent([Cell(19, (0,))]),
            attention([text(range(20))], value=None),
        ],
        "lfm2": [WHOLE, recurrent([Cell(19, (0,))])],
        "minimax-m3": [WHOLE, WHOLE],
    }[arch]
    data = session_file(arch, *sections, words=range(5))
    start = len(session_file(arch, words=range(5)))
    for stop in {*range(4, len(data), 3), start}:
        opened = read(data[:stop])
        assert codes(opened)[0] in ("unreadable", "truncated"), stop


def test_a_model_without_a_cache_is_sound() -> None:
    opened = read(session_file("bert"))
    assert codes(opened) == []
    assert opened.report.sequences == ()


@pytest.mark.parametrize("n_stream", [1, 2, 5])
def test_streams_of_a_context(n_stream: int) -> None:
    streams = [text(range(3 + seq), (seq,)) for seq in range(n_stream)]
    opened = read(session_file("llama", attention(streams)))
    assert codes(opened) == []
    assert [own.run for own in opened.report.sequences] == [(0, 3 + seq) for seq in range(n_stream)]
    assert [int(opened.cell_map(seq).member.sum()) for seq in range(n_stream)] == [
        3 + seq for seq in range(n_stream)
    ]


def test_a_stream_holds_its_own_sequence_only() -> None:
    streams = [text(range(3), (0,)), text(range(3), (0,))]
    assert codes(read(session_file("llama", attention(streams)))) == ["inconsistent", "duplicate"]


def test_shared_cells_and_orphans() -> None:
    cells = [*text(range(4), (0, 2)), *text(range(4, 6), (2,)), *text(range(9, 12), ())]
    opened = read(session_file("llama", attention([cells])))
    assert codes(opened) == []
    assert [(own.id, own.run) for own in opened.report.sequences] == [(0, (0, 4)), (2, (0, 6))]
    assert opened.report.fact("orphan_cells") == 3
    assert opened.report.fact("shared_cells") == 4
    cells_of = opened.cell_map(1)
    assert cells_of.owners.tolist() == [2] * 4 + [1] * 2 + [0] * 3
    assert cells_of.member.tolist() == [True] * 6 + [False] * 3


@pytest.mark.parametrize("arch", [None, "llama"])
def test_raw_sequence_blobs_name_their_sequence(arch: str | None) -> None:
    opened = read(raw_sequence(3, attention([text(range(6), (3,))])), arch)
    assert opened.report.format == "llama.cpp-raw"
    assert opened.report.sequences[0].id == 3


@pytest.mark.parametrize(
    "sections", [[recurrent(REC)], [attention([text(range(12, 20))])]], ids=["hybrid", "window"]
)
def test_partial_blobs_read_as_what_they_hold(sections: list[bytes]) -> None:
    assert codes(read(raw_sequence(0, *sections))) == []


class TestImages:
    """M-RoPE: repeats and jumps that an image explains, and those that it doesn't."""

    def section(self, cells: list[Cell]) -> bytes:
        return sequence_file(attention([cells], ext=12))

    @pytest.mark.parametrize(("width", "height"), [(1, 1), (3, 2), (2, 5), (4, 4), (1, 7)])
    def test_an_image_explains_its_jump(self, width: int, height: int) -> None:
        after = 6 + max(width, height)
        cells = [*text(range(6)), *image(6, width, height), *text(range(after, after + 4))]
        opened = read(self.section(cells))
        assert codes(opened) == []
        sequence = opened.report.sequences[0]
        assert (sequence.holes, sequence.duplicates) == ((), ())
        assert sequence.usable == sequence.run

    def test_two_images_in_a_row(self) -> None:
        cells = [*text(range(2)), *image(2, 3, 3), *image(5, 2, 4), *text(range(9, 11))]
        assert codes(read(self.section(cells))) == []

    def test_a_longer_jump_is_a_hole(self) -> None:
        cells = [*text(range(6)), *image(6, 3, 2), *text(range(11, 14))]
        opened = read(self.section(cells))
        assert codes(opened) == ["hole"]
        assert opened.report.sequences[0].holes == ((9, 11),)

    def test_a_missing_cell_of_an_image_is_a_hole(self) -> None:
        cells = [*text(range(6)), *image(6, 3, 2)[:4], *image(6, 3, 2)[5:], *text(range(9, 12))]
        opened = read(self.section(cells))
        assert codes(opened) == ["hole"]
        assert opened.report.sequences[0].holes == ((6, 7),)

    def test_a_repeated_image_cell_is_a_duplicate(self) -> None:
        cells = [*text(range(6)), *image(6, 3, 2), image(6, 3, 2)[2], *text(range(9, 12))]
        assert codes(read(self.section(cells))) == ["duplicate"]

    def test_a_repeated_text_cell_is_a_duplicate(self) -> None:
        cells = [*text(range(6)), *text([3]), *text(range(6, 9))]
        opened = read(self.section(cells))
        assert codes(opened) == ["duplicate"]
        assert opened.report.sequences[0].duplicates == (3,)

    def test_a_text_hole_stays_a_hole(self) -> None:
        cells = [*text(range(4)), *text(range(5, 7)), *image(7, 2, 2), *text(range(9, 12))]
        opened = read(self.section(cells))
        assert codes(opened) == ["hole"]
        assert opened.report.sequences[0].holes == ((4, 5),)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (text(range(12, 20)), []),
        (text(range(20)), []),
        (text([19]), []),
        (text(range(12, 19)), ["swa_drift"]),
        (text(range(12, 21)), ["swa_drift"]),
        ([], ["swa_drift"]),
        (text([12, 13, 15, 16, 17, 18, 19]), ["hole"]),
    ],
)
def test_window_sections(window: list[Cell], expected: list[str]) -> None:
    data = session_file("gemma3", WHOLE, attention([window]))
    assert codes(read(data)) == expected


def test_a_window_with_positions_that_full_attention_lacks() -> None:
    full = attention([text([*range(5), *range(8, 20)])])
    assert codes(read(session_file("gemma3", full, WHOLE))) == ["swa_drift", "hole"]


@pytest.mark.parametrize("end", [0, 18, 20, 500])
def test_a_recurrent_state_elsewhere(end: int) -> None:
    opened = read(session_file("lfm2", WHOLE, recurrent([Cell(end, (0,))])))
    assert codes(opened) == ["recurrent_drift"]
    usable = opened.report.sequences[0].usable
    assert usable == ((0, end + 1) if end < 20 else None)


def test_a_sequence_without_recurrent_state() -> None:
    cells = [*text(range(5), (0,)), *text(range(5), (1,))]
    opened = read(session_file("lfm2", attention([cells]), recurrent([Cell(4, (0,))])))
    assert codes(opened) == ["recurrent_drift"]
    assert opened.report.findings[0].sequence == 1


@pytest.mark.parametrize(
    "index",
    [
        text([*range(19), 25]),
        text(range(19)),
        text([1, 0, *range(2, 20)]),
        text(range(20), (0, 1)),
        [],
    ],
    ids=["moved", "shorter", "order", "ids", "empty"],
)
def test_an_index_that_differs(index: list[Cell]) -> None:
    data = session_file("minimax-m3", WHOLE, attention([index]))
    assert "index_drift" in codes(read(data))


@pytest.mark.parametrize(
    "block",
    [
        [-1, 1, 2, 7, 8, 0],
        [-1, 1, 0, 0],
        [-1, 1, 1, -1, 1, 0, 3, 0x00636261],
    ],
)
def test_server_token_blocks(block: list[int]) -> None:
    opened = read(sequence_file(WHOLE, words=block))
    assert codes(opened) == []
    assert opened.report.fact("tokens") == block[2]


@pytest.mark.parametrize(
    "block", [[-1], [-1, 9, 1, 7, 0], [-1, 1, 900, 7, 0], [-1, 1, -5, 0], [-1, 1, 0, 7]]
)
def test_server_token_blocks_that_contradict_themselves(block: list[int]) -> None:
    assert codes(read(sequence_file(WHOLE, words=block))) == ["inconsistent"]


@pytest.mark.parametrize("version", [0, 1, 4, 99])
def test_other_versions_are_refused_with_their_number(version: int) -> None:
    report = read(sequence_file(WHOLE, version=version)).report
    assert (report.verdict, report.detail) == ("unreadable", "version")
    assert f"version {version}" in report.reason


@pytest.mark.parametrize("ext", [0, 8])
@pytest.mark.parametrize("streamed", [False, True])
def test_the_version_before(ext: int, streamed: bool) -> None:
    """Version 2 and 9: an extension of 8 bytes or none, a stream field or none."""
    section = attention([text(range(20))], ext=ext, streamed=streamed)
    assert codes(read(sequence_file(section, version=2))) == []
    outputs = struct.pack("<Ii", 1, 0) + struct.pack("<Q3f", 3, 0, 1, 2) + struct.pack("<Q", 0)
    for body in (section, outputs + section):
        opened = read(session_file("llama", body, version=9))
        assert codes(opened) == [], opened.report.reason
        assert opened.report.sequences[0].run == (0, 20)


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\x00\x00\x00",
        b"more",
        b"\x01" * 64,
    ],
)
def test_trailing_bytes(damage: bytes) -> None:
    report = read(session_file("llama", WHOLE) + damage).report
    assert report.verdict == "unreadable"


@pytest.mark.parametrize(
    "cell", [Cell(-3), Cell(3, (256,)), Cell(3, (2, 1)), Cell(3, (1, 1)), Cell(3, (-1,))]
)
def test_cells_that_cannot_be(cell: Cell) -> None:
    report = read(session_file("llama", attention([[*text(range(3)), cell]]))).report
    assert (report.verdict, report.detail) == ("unreadable", "structure")
    offset = report.findings[0].offset
    assert offset is not None
    assert offset >= len(session_file("llama")) + 8


def test_cells_of_a_sequence_file_that_name_several_sequences() -> None:
    cells = [*text(range(5)), Cell(5, (3,)), *text(range(6, 9))]
    opened = read(sequence_file(attention([cells])))
    assert codes(opened) == ["inconsistent"]
    assert opened.report.sequences[0].run == (0, 9)


def test_an_empty_sequence_file_is_empty() -> None:
    opened = read(sequence_file(attention([[]])))
    assert codes(opened) == []
    assert opened.report.sequences == ()
    assert "empty" in opened.report.reason


def test_tokens_beyond_the_file() -> None:
    data = struct.pack("<III", 0x67677371, 3, 1 << 31)
    assert read(data).report.verdict == "unreadable"
    assert read(data[:8] + tokens([1, 2, 3])[:-2]).report.verdict == "truncated"


def test_a_name_that_is_no_name() -> None:
    data = struct.pack("<III", 0x6767736E, 10, 0) + struct.pack("<I", 3) + b"a\x00b"
    assert read(data + WHOLE).report.verdict == "unreadable"
    assert name("llama")[4:] == b"llama"
