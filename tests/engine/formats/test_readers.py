"""Which reader takes a file: by content, whatever its name; what is refused, and how."""

from __future__ import annotations

import pickle
import struct
import zipfile
from pathlib import Path

import pytest

from engine.errors import Unreadable
from engine.formats import READERS, open_file
from tests.helpers.prompt_files import archive, rows

SAMPLES = Path(__file__).parents[2] / "data" / "samples"


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ("llama-cpp/clean.seq", "llama.cpp-seq"),
        ("llama-cpp/clean.session", "llama.cpp-session"),
        ("llama-cpp/raw-context.bin", "llama.cpp-raw"),
        ("llama-cpp/debug-swa.log", "llama.cpp-log"),
        ("mlx-lm/clean-llama.safetensors", "mlx-lm"),
        ("mlx-lm/truncated-llama.safetensors", "mlx-lm"),
        ("kv-events/vllm-clean.jsonl", "kv-events"),
    ],
)
def test_the_name_of_a_file_does_not_count(tmp_path: Path, sample: str, name: str) -> None:
    path = tmp_path / "state.dat"
    path.write_bytes((SAMPLES / sample).read_bytes())
    with open_file(path) as opened:
        assert opened.report.format == name


def test_one_reader_at_most_knows_a_sample() -> None:
    from engine.formats.source import Source

    for path in SAMPLES.rglob("*"):
        if path.is_file() and path.suffix not in (".json", ".md"):
            known = [reader.name for reader in READERS if reader.matches(Source.open(path))]
            assert len(known) == (0 if path.name == "bad-magic.seq" else 1), (path.name, known)


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('a pickle was run')",)


def test_pickles_are_refused_and_not_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain.pt"
    plain.write_bytes(pickle.dumps(Bomb()))
    zipped = tmp_path / "zipped.pt"
    with zipfile.ZipFile(zipped, "w") as out:
        out.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    for path in (plain, zipped):
        with open_file(path) as opened:
            assert opened.report.verdict == "unreadable"
            assert opened.report.detail == "pickle"
            assert "safetensors.torch.save_file" in opened.report.reason


@pytest.mark.parametrize(
    ("data", "verdict", "words"),
    [
        (b"", "truncated", "empty"),
        (b"qs", "truncated", "magic"),
        (b"GGUF\x03\x00\x00\x00", "unreadable", "GGUF"),
        (b"\x93NUMPY\x01\x00", "unreadable", "NumPy"),
        (b'{"case": "x", "ops": [], "expect": []}', "unreadable", "bankflip run"),
        (b'case = "x"\nexpect = []\n[[ops]]\nop = "append"\n', "unreadable", "bankflip run"),
        (b'case = "x"\nops = [{op = "reset", seq = 0}]\n', "unreadable", "bankflip run"),
        (b'note = """\n# a\nb"""\n[[ops]]\nop = ???\n', "unreadable", "bankflip run"),
        (b"# A text\n\nwith an example:\n\n[[ops]]\nop = 1\n", "unreadable", "known format"),
        (b'{"shops": [1]}', "unreadable", "known format"),
        (b"hello, world\n", "unreadable", "known format"),
        (bytes(100), "unreadable", "known format"),
        (struct.pack("<Q", 50) + b'{"a": 1', "truncated", "JSON header"),
        (struct.pack("<Q", 4) + b"{oh}", "unreadable", "JSON header"),
        (struct.pack("<Q", 2) + b"{}", "unreadable", "no cache"),
    ],
)
def test_other_files(tmp_path: Path, data: bytes, verdict: str, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with open_file(path) as opened:
        assert opened.report.verdict == verdict
        assert words in opened.report.reason
        assert opened.report.exit_status == 2


def test_what_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path, Path("a\0b")):
        with pytest.raises(Unreadable):
            open_file(path)


def test_tensors_that_share_bytes_are_refused(tmp_path: Path) -> None:
    data = archive({"0.0": rows(3), "0.1": rows(3)}, {"2.0": "KVCache"})
    path = tmp_path / "overlap.safetensors"
    path.write_bytes(data.replace(b"[48, 96]", b"[40, 88]"))
    with open_file(path) as opened:
        assert opened.report.verdict == "unreadable"
        assert "behind byte" in opened.report.reason


def test_trailing_bytes_are_unreadable_and_the_rest_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "long.safetensors"
    path.write_bytes((SAMPLES / "mlx-lm" / "clean-llama.safetensors").read_bytes() + b"more")
    with open_file(path) as opened:
        assert [code.value for code in opened.report.codes] == ["unreadable"]
        assert opened.report.detail == "trailing"
        assert opened.report.sequences[0].run == (0, 43)


def test_a_part_that_is_not_there_has_no_norms() -> None:
    with open_file(SAMPLES / "llama-cpp" / "clean.seq") as opened:
        with pytest.raises(KeyError):
            opened.row_norms("layer.99")
        with pytest.raises(IndexError):
            opened.cell_map(1)
