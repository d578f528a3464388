"""`ProtectedSession`: outcomes as dicts, text, faults, going back, a journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models import cache as lm

from engine import protect
from engine.protect import views
from tests.helpers.mlxlm_models import CONFIGS, VOCABULARY, model_folder, tiny_model

PROMPT = np.random.default_rng(5).integers(1, VOCABULARY - 1, 30).tolist()


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_a_folder_generates_what_mlx_lm_generates(name: str, tmp_path: Path) -> None:
    session = protect.ProtectedSession.open(model_folder(tmp_path / "m", name), chunk=7)
    assert session.feed(PROMPT)["outcome"] == "ok"
    mine = [item["token"] for item in session.generate(8, stop=False)]
    plain = tiny_model(name)
    steps = generate_step(mx.array(PROMPT), plain, max_tokens=8, prefill_step_size=7)
    assert mine == [int(token) for token, _ in steps]
    assert session.run == [0, 36]
    assert session.tokens == PROMPT + mine[:-1]
    assert len(session.journal) == 5 + 7


def test_records_are_plain(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    session = protect.ProtectedSession.open(
        model_folder(tmp_path / "m"), chunk=16, digests=True, on_record=seen.append
    )
    session.arm(2, "exception")
    session.feed(PROMPT)
    session.feed(PROMPT)
    session.rewind(99)
    session.trim(3)
    assert seen == session.journal
    assert json.loads(json.dumps(seen)) == seen
    assert [record["outcome"] for record in seen] == ["failed", "ok", "ok", "rejected", "ok"]
    failed = seen[0]
    assert (failed["stage"], failed["kind"], failed["run_after"]) == ("layer.2", "structural", None)
    assert failed["digests_before"] == failed["digests_after"]
    assert seen[1]["run_after"] == [0, 15]
    assert (seen[3]["given"], seen[3]["nearest"]) == (99, 30)
    assert seen[4]["run_after"] == [0, 26]


@pytest.mark.parametrize("kind", protect.faults.KINDS)
def test_a_failed_step_leaves_the_session_as_it_was(kind: str) -> None:
    session = protect.ProtectedSession(tiny_model("qwen3_next"))
    session.feed(PROMPT)
    twin = protect.ProtectedSession(tiny_model("qwen3_next"))
    twin.feed(PROMPT)
    before, logits = session.digests(), session.logits
    for layer in range(session.n_layers):
        session.arm(layer, kind)
        record = session.feed([3])
        assert record["outcome"] in ("failed", "cancelled")
        assert record["stage"] == f"layer.{layer}"
        assert session.digests() == before
        assert session.logits is logits
        assert session.tokens == PROMPT
    assert session.feed([3])["outcome"] == twin.feed([3])["outcome"] == "ok"
    assert np.array_equal(session.logits, twin.logits)
    assert session.digests() == twin.digests()


def test_a_persistent_fault_stays_until_it_is_taken_away() -> None:
    session = protect.ProtectedSession(tiny_model("llama"))
    session.arm(0, "exception", persistent=True)
    assert [session.feed([1])["outcome"] for _ in range(3)] == ["failed"] * 3
    session.disarm()
    assert session.feed([1])["outcome"] == "ok"


def test_generation_ends_at_a_failure_and_goes_on_later() -> None:
    session = protect.ProtectedSession(tiny_model("llama"))
    session.feed(PROMPT)
    whole = protect.ProtectedSession(tiny_model("llama"))
    whole.feed(PROMPT)
    expected = [item["token"] for item in whole.generate(6)]
    session.arm(1, "evaluation")
    items = list(session.generate(6))
    assert [item["token"] for item in items] == [expected[0], None]
    assert items[-1]["record"]["kind"] == "command"
    assert [item["token"] for item in session.generate(6)] == expected


def test_cancel_is_read_between_chunks() -> None:
    session = protect.ProtectedSession(tiny_model("llama"), chunk=10)
    record = session.feed(PROMPT, cancelled=lambda: len(session.tokens) >= 20)
    assert record["outcome"] == "cancelled"
    assert session.run == [0, 19]


@pytest.mark.parametrize("name", ["llama", "qwen3_next", "gemma3_text"])
def test_logits_after_going_back_are_those_of_that_position(name: str) -> None:
    session = protect.ProtectedSession(tiny_model(name), chunk=6, checkpoint_every=6)
    kept = []
    for token in PROMPT:
        session.feed([token])
        kept.append(session.logits)
    for position in (29, 18, 7, 1):
        before = session.digests()
        twin = session.fork(position)
        assert np.array_equal(twin.logits, kept[position - 1])
        assert session.digests() == before
        assert session.rewind(position)["outcome"] == "ok"
        assert np.array_equal(session.logits, kept[position - 1])
        assert session.digests() == twin.digests()
        assert session.tokens == twin.tokens == PROMPT[:position]
    session.rewind(0)
    assert (session.run, session.logits) == (None, None)
    session.feed(PROMPT[:1])
    assert np.array_equal(session.logits, kept[0])


def test_a_rewind_that_fails_changes_nothing() -> None:
    session = protect.ProtectedSession(tiny_model("qwen3_next"), chunk=6, checkpoint_every=0)
    session.feed(PROMPT)
    before, logits = session.digests(), session.logits
    with protect.faults.armed(session.model, 1, "exception"):
        record = session.rewind(20)
    assert record["outcome"] == "failed"
    assert (session.digests(), session.tokens, session.logits is logits) == (before, PROMPT, True)


def test_requests_that_make_no_sense_are_rejected() -> None:
    session = protect.ProtectedSession(tiny_model("llama"))
    assert session.feed([])["outcome"] == "rejected"
    assert session.feed([1], chunk=0)["outcome"] == "rejected"
    for token in (-1, VOCABULARY):
        record = session.feed([1, token])
        assert record["outcome"] == "rejected"
        assert f"from 0 to {VOCABULARY - 1}, given {token}" in record["error"]
    with pytest.raises(protect.Refused):
        next(session.generate(1))
    with pytest.raises(ValueError, match="no such layer"):
        session.arm(9, "exception")
    with pytest.raises(ValueError, match="unknown kind"):
        session.arm(0, "gremlin")
    with pytest.raises(protect.ProtectError, match="no tokenizer"):
        session.encode("w1")


def test_text_is_streamed(tmp_path: Path) -> None:
    session = protect.ProtectedSession.open(model_folder(tmp_path / "m"))
    session.feed(session.encode("w1 w2 w3"))
    assert session.tokens == [1, 2, 3]
    items = list(session.generate(5, stop=False))
    text = "".join(item["text"] for item in items)
    assert [f"w{item['token']}" for item in items[: len(text.split())]] == text.split()
    assert text.strip()


def test_a_saved_session_is_a_prompt_cache_of_mlx_lm(tmp_path: Path) -> None:
    session = protect.ProtectedSession(tiny_model("gemma3_text"), chunk=8)
    session.feed(PROMPT)
    path = tmp_path / "cache.safetensors"
    session.save(path)
    cache, metadata = lm.load_prompt_cache(str(path), return_metadata=True)
    assert views.digests(cache) == session.digests()
    assert metadata["tokens"] == ",".join(map(str, PROMPT))


def test_layers_tell_class_and_runs() -> None:
    session = protect.ProtectedSession(tiny_model("gemma3_text"), chunk=8)
    session.feed(PROMPT)
    session.feed([4])
    assert [(layer["owner"], layer["class"], layer["runs"]) for layer in session.layers()] == [
        ("layer.0", "RotatingKVCache", [[[19, 30]]]),
        ("layer.1", "KVCache", [[[0, 30]]]),
        ("layer.2", "RotatingKVCache", [[[19, 30]]]),
        ("layer.3", "KVCache", [[[0, 30]]]),
    ]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "config.json").unlink(), "expected a config.json"),
        (lambda f: (f / "config.json").write_text("{"), "expected JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "model_type"),
        (lambda f: (f / "config.json").write_text('{"model_type": "nil"}'), "can't open"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"short"), "can't open"),
        (lambda f: (f / "tokenizer.json").write_text("{"), "tokenizer"),
    ],
)
def test_bad_folders_are_named(tmp_path: Path, spoil: Any, words: str) -> None:
    folder = model_folder(tmp_path / "m")
    assert protect.is_model_folder(folder)
    spoil(folder)
    with pytest.raises(protect.BadFolder, match=words) as bad:
        protect.ProtectedSession.open(folder)
    assert str(folder) in str(bad.value)
    with pytest.raises(protect.BadFolder, match="no such folder"):
        protect.ProtectedSession.open(tmp_path / "nowhere")
