"""The host target itself: conversions, the compiler's strictness, the cache, the sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

import metal
from metal import host, source
from metal.kernels import KERNELS
from tests.metal import matrix

ROOT = Path(__file__).parents[2]


def typed_bits(words: np.ndarray, element: str) -> mx.array:
    return mx.array(words.reshape(-1, 1)).view(getattr(mx, element))


@pytest.mark.parametrize("element", ["float16", "bfloat16"])
def test_every_16_bit_pattern_is_read_as_its_value(element, host_target):
    x = typed_bits(np.arange(2**16, dtype=np.uint16), element)
    out = metal.run("pool_groups", x, group_size=1, backend="host")
    expected = x.astype(mx.float32)
    same = np.array(out.view(mx.uint32)) == np.array(expected.view(mx.uint32))
    nan = np.isnan(matrix.wide(x))
    minus_zero = np.arange(2**16).reshape(-1, 1) == 0x8000  # 0 - 0 is 0
    assert np.all(same | nan | minus_zero)  # and a NaN may lose its payload
    assert np.array_equal(np.isnan(matrix.wide(out)), nan)


# the compiler -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "const double wide = float(x[0]) * 2.0; parts[0] = float(wide);",
        "int unused = 3;",
        "parts[0] = undefined_name;",
    ],
)
def test_warnings_and_errors_refuse_a_text(line, host_target, tmp_path):
    good = source.host_unit()
    place = "int64_t x_at[8];"
    broken = good.replace(place, f"{line}\n{place}", 1)
    assert broken != good
    with pytest.raises(host.NoCompiler, match="refused"):
        host.build(broken, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_builds_at_the_same_time_do_no_harm(host_target, tmp_path):
    unit = source.prelude("host") + 'extern "C" int answer() { return 42; }\n'
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: host.build(unit, tmp_path), range(4)))
    assert len(paths) == 1
    assert [p.name for p in tmp_path.iterdir()] == [paths.pop().name]


def test_second_build_takes_the_cached_object(host_target, tmp_path):
    unit = 'extern "C" int answer() { return 43; }\n'
    first = host.build(unit, tmp_path)
    stamp = first.stat().st_mtime_ns
    assert host.build(unit, tmp_path) == first
    assert first.stat().st_mtime_ns == stamp
    assert host.build(unit + "\n", tmp_path) != first


def test_missing_compiler_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "compiler", lambda: None)
    assert "host" not in metal.available()
    with pytest.raises(host.NoCompiler, match="no C"):
        host.build("int x;", tmp_path)


# the sanitizers ---------------------------------------------------------------------------------


def sanitized(script: list[str]) -> subprocess.CompletedProcess[str]:
    """Run Python with the sanitizer's runtime loaded first."""
    environment = {
        **os.environ,
        host.SANITIZE_VARIABLE: "1",
        "LD_PRELOAD": host.sanitizer(),
        # with the gap protected, CUDA cannot map its memory where MLX has that backend
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:protect_shadow_gap=0",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, *script], env=environment, capture_output=True, text=True, check=False
    )


linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="the sanitizer is preloaded as on Linux; CI runs it there"
)


@linux_only
def test_whole_matrix_is_clean_under_the_sanitizers(host_target):
    done = sanitized([str(ROOT / "tests/metal/matrix.py"), "host"])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "0 failures in all" in done.stdout


@linux_only
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("parts[int64_t(n_parts) * n_rows * width] = 0.0f;", "heap-buffer-overflow"),
        ("parts[0] = float((2147483647 - width) + 2 * width);", "signed integer overflow"),
    ],
)
def test_sanitizers_catch_a_planted_fault(line, words, host_target, tmp_path):
    """The clean run above proves something only if a dirty text does not pass."""
    few = {name: KERNELS[name] for name in ("linear", "sum_parts")}
    text = source.host_unit(few).replace("int64_t x_at[8];", f"{line}\nint64_t x_at[8];", 1)
    unit = tmp_path / "unit.cpp"
    unit.write_text(text, encoding="utf-8")
    code = (
        "import sys, pathlib; from metal import host, source\n"
        "import mlx.core as mx, metal\n"
        f"text = pathlib.Path({str(unit)!r}).read_text()\n"
        "source.host_unit = lambda: text\n"
        f"host.cache_folder = lambda: pathlib.Path({str(tmp_path)!r})\n"
        "metal.run('linear', mx.ones((3, 4)), mx.ones((4, 2)), backend='host')\n"
    )
    done = sanitized(["-c", code])
    assert done.returncode != 0
    assert words in done.stderr
