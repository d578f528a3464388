"""Large files open by their headers: memory stays near that of the empty process.

The files are sparse, made here, and the time is printed, not asserted.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GIB = 1 << 30
ALLOWED_MB = 100
PROGRAM = """
import json, resource, sys, time
from engine.formats import open_file
def rss():
    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()
before = rss()
began, used = time.perf_counter(), time.process_time()
opened = open_file(sys.argv[1])
took = time.perf_counter() - began
used = time.process_time() - used
status = open('/proc/self/status').read()
peak = int(status.split('VmHWM:')[1].split()[0]) * 1024  # of this program, not of its parent
report = opened.report.to_json()
print(json.dumps({"took_s": took, "cpu_s": used, "grown_mb": (rss() - before) / 2**20,
    "peak_mb": (peak - before) / 2**20, "verdict": report["verdict"],
    "run": report["sequences"][0]["run"], "parts": len(report["sequences"][0]["parts"])}))
"""


def state_file(path: Path, n_cells: int, n_layers: int) -> None:
    """A llama.cpp sequence file of at least 1 GiB whose payload is never written."""
    row_bytes = 2 * (GIB // (n_layers * n_cells * 4) + 1)
    with path.open("wb") as out:
        out.write(struct.pack("<III", 0x67677371, 3, 0))
        out.write(struct.pack("<II", 1, n_cells))
        out.write(b"".join(struct.pack("<iIi", cell, 1, 0) for cell in range(n_cells)))
        out.write(struct.pack("<II", 0, n_layers))
        for _ in range(2 * n_layers):
            out.write(struct.pack("<iQ", 1, row_bytes))
            out.seek(row_bytes * n_cells, 1)
        out.truncate()


def prompt_cache(path: Path, n_layers: int) -> None:
    """An mlx-lm cache of 1 GiB: every row unwritten but the first of each tensor."""
    rows, heads, width = 4096, 8, 128
    size = 2 * heads * rows * width
    header: dict[str, object] = {}
    meta = {"2.0": ""}
    at = 0
    for layer in range(n_layers):
        meta |= {f"1.{layer}": "KVCache", f"2.{layer + 1}.0": f"{layer}.2"}
        meta[f"2.{layer + 1}.1"] = "scalar"
        for name, shape, dtype, count in (
            (f"{layer}.0", [1, heads, rows, width], "F16", size),
            (f"{layer}.1", [1, heads, rows, width], "F16", size),
            (f"{layer}.2", [], "I32", 4),
        ):
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + count]}
            at += count
    text = json.dumps({"__metadata__": meta, **header}).encode()
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _ in range(n_layers):
            for _ in range(2):
                out.write(b"\x3c\x3c")
                out.seek(size - 2, 1)
            out.write(struct.pack("<i", 1))


def written_cache(path: Path) -> None:
    """An mlx-lm cache of 160 MiB whose rows are all written."""
    rows, width = 4096, 4096
    ones = b"\x3c\x3c" * (rows * width)
    named = ("0.0", "0.1", "1.0", "1.1", "2.0")
    spans = [[len(ones) * at, len(ones) * (at + 1)] for at in range(len(named))]
    header = {
        name: {"dtype": "F16", "shape": [1, 1, rows, width], "data_offsets": span}
        for name, span in zip(named, spans, strict=True)
    }
    header |= {"2.1": {"dtype": "F16", "shape": [1, 1, rows, 0], "data_offsets": [0, 0]}}
    meta = {"2.0": "", **{f"1.{layer}": "ConcatenateKVCache" for layer in range(3)}}
    text = json.dumps({"__metadata__": meta, **header}).encode()
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _ in named:
            out.write(ones)


def opened(path: Path) -> dict[str, float | str | list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    seen: dict[str, float | str | list[int]] = json.loads(done.stdout)
    print(f"{path.name}: {path.stat().st_size / 2**20:.0f} MiB, {seen}")
    return seen


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@pytest.mark.parametrize(("n_cells", "n_layers"), [(8, 32), (131_072, 32)])
def test_a_state_file_of_1_gib_opens_by_its_headers(
    tmp_path: Path, n_cells: int, n_layers: int
) -> None:
    path = tmp_path / "large.seq"
    state_file(path, n_cells, n_layers)
    assert path.stat().st_size >= GIB
    seen = opened(path)
    assert seen["verdict"] == "ok"
    assert seen["run"] == [0, n_cells - 1]
    assert float(str(seen["peak_mb"])) < ALLOWED_MB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_scan_of_1_gib_gives_its_pages_back(tmp_path: Path) -> None:
    path = tmp_path / "large.safetensors"
    prompt_cache(path, 64)
    assert path.stat().st_size >= GIB
    seen = opened(path)
    assert seen["verdict"] == "ok"
    assert seen["run"] == [0, 0]
    assert float(str(seen["peak_mb"])) < ALLOWED_MB


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_scan_of_written_rows_gives_its_pages_back(tmp_path: Path) -> None:
    """Unlike holes these pages are really mapped, in pieces larger than a page."""
    path = tmp_path / "written.safetensors"
    written_cache(path)
    seen = opened(path)
    assert seen["verdict"] == "ok"
    assert seen["run"] == [0, 4095]
    assert float(str(seen["peak_mb"])) < 12
