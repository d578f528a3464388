"""`bankflip generate` on folders of mlx-lm: what mlx-lm chooses, files whole."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.generate import generate_step

from engine.capture import Capture
from tests.helpers.commands import ROOT, Command, ended_by_ctrl_c, valid
from tests.helpers.mlxlm_models import CONFIGS, VOCABULARY, model_folder, tiny_model

PROMPT = np.random.default_rng(5).integers(1, VOCABULARY - 1, 30).tolist()
WORDS = ",".join(map(str, PROMPT))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("lm") / "hybrid", "qwen3_next")


def plain(name: str, n: int, chunk: int) -> list[int]:
    steps = generate_step(mx.array(PROMPT), tiny_model(name), max_tokens=n, prefill_step_size=chunk)
    return [int(token) for token, _ in steps]


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_architecture_generates_what_mlx_lm_does(
    name: str, bankflip: Command, tmp_path: Path
) -> None:
    done = bankflip(
        *("generate", model_folder(tmp_path / "m", name), "--tokens", WORDS),
        *("--steps", 6, "--chunk", 7, "--json", "--backend", "cpu"),
    )
    result = valid("generate", done.json)
    assert result["generated"] == plain(name, 6, 7)
    assert result["transactions"] == result["flips"] == 5 + 5
    assert result["frontier"] == 34
    assert result["exact"] is False
    assert {".".join(key.split(".")[:2]) for key in result["digests"]} == {
        f"layer.{n}" for n in range(len(tiny_model(name).layers))
    }


def test_logits_of_every_token_and_a_capture(
    bankflip: Command, folder: Path, tmp_path: Path
) -> None:
    path, capture_path = tmp_path / "l.npy", tmp_path / "c.bankflip"
    done = bankflip(
        *("generate", folder, "--tokens", WORDS, "--steps", 3, "--chunk", 10),
        *("--logits", path, "--record", capture_path, "--digests", "layer", "--json"),
    )
    logits = np.load(path)
    assert logits.dtype == np.float32
    assert logits.shape == (32, VOCABULARY)
    whole = np.array(tiny_model("qwen3_next")(mx.array([PROMPT]))[0])
    assert np.abs(logits[:30] - whole).max() <= 1e-4 * np.abs(whole).max()
    assert np.argmax(logits[29:], axis=1).tolist() == done.json["generated"]
    with Capture(capture_path) as capture:
        records = list(capture.records())
        assert [r.n_tokens for r in records] == [10, 10, 10, 1, 1]
        last = dict(records[-1].digests_after)
        assert capture.about["exact"] == "unproved"
    assert {k: v for k, v in last.items() if k.startswith("layer.")} == done.json["digests"]


def test_text_streams_and_ends_at_the_end_of_text(bankflip: Command, folder: Path) -> None:
    words = " ".join(f"w{token}" for token in PROMPT)
    done = bankflip("generate", folder, "--prompt", words, "--steps", 4, "--chunk", 7)
    assert done.status == 0
    assert done.out.splitlines()[0] == " ".join(f"w{i}" for i in plain("qwen3_next", 4, 7))
    assert "exactness unproved" in done.out


def test_a_folder_without_a_tokenizer_takes_ids_only(bankflip: Command, tmp_path: Path) -> None:
    bare = model_folder(tmp_path / "bare")
    for file in bare.glob("tokenizer*"):
        file.unlink()
    done = bankflip("generate", bare, "--prompt", "w1")
    assert done.status == 2
    assert "no tokenizer" in done.one_sentence()
    done = bankflip("generate", bare, "--tokens", WORDS, "--steps", 3)
    assert done.out.split("\n")[0].split() == [str(i) for i in plain("llama", 3, 64)]


def test_a_prompt_for_our_own_model_is_wrong_usage(bankflip: Command) -> None:
    done = bankflip("generate", "qwen4exp-tiny", "--prompt", "w1")
    assert done.status == 2
    assert "no tokenizer" in done.one_sentence()


def test_refusals_are_status_1_and_leave_files(
    bankflip: Command, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "l.npy"
    path.write_bytes(b"earlier")
    for more, word in (
        (("--tokens", "1,2", "--start", 4096), "expected 0, given 4096"),
        (("--tokens", f"1,{VOCABULARY}"), f"given {VOCABULARY}"),
    ):
        done = bankflip("generate", folder, *more, "--logits", path)
        assert done.status == 1
        assert word in done.one_sentence()
        assert path.read_bytes() == b"earlier"
    assert [p.name for p in tmp_path.iterdir()] == ["l.npy"]


def test_mlx_lm_that_is_not_installed_is_named(
    bankflip: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlx_lm", None)
    done = bankflip("generate", folder, "--tokens", "1")
    assert done.status == 2
    assert "pip install 'bankflip[mlx-lm]'" in done.one_sentence()


def _change(folder: Path, **fields: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))


def _no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _cut_weights(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


HOSTILE = {
    "unknown type": lambda f: _change(f, model_type="no_such_model"),
    "type that is a path": lambda f: _change(f, model_type="../../evil"),
    "type with dots": lambda f: _change(f, model_type="..x"),
    "code of its own": lambda f: _change(f, model_file="evil.py"),
    "a billion layers": lambda f: _change(f, num_hidden_layers=10**9),
    "sizes that do not fit": lambda f: _change(f, hidden_size=64),
    "a size that is text": lambda f: _change(f, hidden_size="wide"),
    "no words": lambda f: _change(f, vocab_size=0),
    "a model that can't run": lambda f: _change(f, rope_theta="x"),
    "no weights": _no_weights,
    "cut weights": _cut_weights,
    "weights that are none": lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 64),
    "a tokenizer that is none": lambda f: (f / "tokenizer.json").write_text("{"),
    "a tokenizer with code": lambda f: (f / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["evil.Evil", None]}})
    ),
}


@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_hostile_folders_are_one_sentence(what: str, bankflip: Command, tmp_path: Path) -> None:
    bad = model_folder(tmp_path / "bad")
    (bad / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    HOSTILE[what](bad)
    if what == "a tokenizer with code":
        (bad / "tokenizer.json").unlink()
    done = bankflip("generate", bad, "--tokens", "1")
    assert done.status == 2, done.err
    assert str(bad) in done.one_sentence()
    assert not (tmp_path / "ran").exists()


def test_ctrl_c_is_130_and_publishes_nothing_by_half(folder: Path, tmp_path: Path) -> None:
    capture_path, logits = tmp_path / "c.bankflip", tmp_path / "l.npy"
    many = json.dumps((PROMPT * 2000)[:40000])
    (tmp_path / "t.json").write_text(many)
    command = [
        *(sys.executable, "-m", "app", "generate", str(folder), "--chunk", "8"),
        *("--tokens-file", str(tmp_path / "t.json"), "--record", str(capture_path)),
        *("--logits", str(logits)),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        wal = capture_path.with_name(capture_path.name + "-wal")
        if wal.exists() and wal.stat().st_size > 80_000:
            break
        time.sleep(0.02)
    _, err = ended_by_ctrl_c(process)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not logits.exists()
    with Capture(capture_path) as capture:
        records = list(capture.records())
    done = [record for record in records if record.outcome == "ok"]
    assert done
    assert [record.outcome for record in records[len(done) :]] in ([], ["cancelled"])
    for record in records:
        view = record.sequences[0]
        assert {part.last for part in view.parts} == {view.stop - 1}
