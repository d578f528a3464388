"""The decoder against what transformers 5.24 computed for the same weights and tokens."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.graph.rotary import rotate
from tests.helpers import golden
from tests.helpers.golden import Runner

TOLERANCE = 2e-5

pytestmark = pytest.mark.parametrize("name", golden.MODELS)


def agree(found: np.ndarray, expected: np.ndarray) -> None:
    """Within the tolerance everywhere, and the same best token in every row."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCE
    assert np.array_equal(found.argmax(-1), expected.argmax(-1))


@pytest.mark.parametrize("case", ["full", "token", "chunks0", "chunks1", "chunks2"])
def test_logits_of_every_chunking(name: str, case: str) -> None:
    tokens = golden.arrays(name, "full")["tokens"]
    runner = Runner(golden.model(name))
    found = runner.feed_all(golden.cut(tokens, golden.feeds(name, case)))
    agree(found, golden.arrays(name, case)["logits"])
    assert runner.status == 0


def test_interleaved_turns(name: str) -> None:
    steps = next(c["steps"] for c in golden.manifest(name)["cases"] if c["name"] == "turns")
    runners = {s["sequence"]: Runner(golden.model(name)) for s in steps}
    found = np.concatenate([runners[s["sequence"]].feed(s["tokens"]) for s in steps])
    agree(found, golden.arrays(name, "turns")["logits"])


def test_two_continuations_of_one_prefix(name: str) -> None:
    prefix = golden.feeds(name, "fork_a")[0]
    trunk = Runner(golden.model(name))
    tokens = golden.arrays(name, "fork_a")["tokens"]
    first = trunk.feed(tokens[:prefix])
    for case in ("fork_a", "fork_b"):
        case_tokens = golden.arrays(name, case)["tokens"]
        rest = trunk.fork().feed(case_tokens[prefix:])
        agree(np.concatenate([first, rest]), golden.arrays(name, case)["logits"])


def test_greedy_continuation(name: str) -> None:
    data = golden.arrays(name, "greedy")
    runner = Runner(golden.model(name))
    rows = [runner.feed(data["prompt"])[-1]]
    ids = [int(rows[-1].argmax())]
    while len(ids) < len(data["ids"]):
        rows.append(runner.feed([ids[-1]])[-1])
        ids.append(int(rows[-1].argmax()))
    assert ids == data["ids"].tolist()
    agree(np.stack(rows), data["logits"])


@pytest.mark.parametrize("row", [0, 1])
def test_left_padded_rows_are_runs_that_start_later(name: str, row: int) -> None:
    data = golden.arrays(name, "leftpad")
    live = data["mask"][row].astype(bool)
    pads = int((~live).sum())
    for first in {0, pads}:
        runner = Runner(golden.model(name), first_position=first)
        parts = [runner.feed(data["ids"][row][live])]
        parts += [runner.feed([token]) for token in data["next_ids"][row]]
        agree(np.concatenate(parts), data["logits"][row, pads:])
        assert runner.status == 0


def test_state_after_every_snapshot(name: str) -> None:
    tokens = golden.arrays(name, "full")["tokens"]
    expected = golden.arrays(name, "states")
    model = golden.model(name)
    runners = {}
    for key in expected:
        stop = int(key.split(".")[0][2:])
        if stop not in runners:
            runners[stop] = Runner(model)
            runners[stop].feed(tokens[:stop])
    for key, value in expected.items():
        at, layer, part = key.split(".")
        found = owner_array(runners[int(at[2:])], int(layer[5:]), part)
        assert found.shape == value.shape, key
        if value.dtype == np.int64:
            assert np.array_equal(found, value), key
        else:
            assert np.abs(found - value).max() <= TOLERANCE, key


def owner_array(runner: Runner, layer: int, part: str) -> np.ndarray:
    """Our owner in the golden's layout; keys are stored unrotated and rotated here."""
    arrays = runner.state.arrays()
    if part in ("k", "v"):
        rows = arrays[f"qsa.kv.{layer}.{part}"]
        if part == "k":
            cos, sin = runner.model.rotary.angles(np.arange(len(rows), dtype=np.int64))
            rows = np.array(rotate(mx.array(rows), (cos[:, None], sin[:, None])))
        return rows.transpose(1, 0, 2)
    names = {
        "gdn_conv": "gdn.conv",
        "gdn_state": "gdn.recurrent",
        "ple_conv": "ple.conv",
        "ple_ids": "ple.history",
    }
    if part == "index_keys":
        return arrays[f"qsa.index.{layer}.raw"]
    return arrays[f"{names[part]}.{layer}"]


def test_activations_of_every_stage(name: str) -> None:
    expected = golden.arrays(name, "trace")
    model = golden.model(name)
    runner = Runner(model)
    step = runner.step(golden.arrays(name, "full")["tokens"])
    found: dict[str, mx.array] = {}
    for stage in runner.stages:
        stage.run(step)
        if stage.name.endswith("moe.experts"):
            layer = stage.name.split(".")[1]
            found[f"layer{layer}.streams"] = step.live(step.values["streams"])
    same = {
        "attn_hc_mixed": "mixer_in",
        "attn_hc_inject": "mixer_inject",
        "mlp_hc_mixed": "moe_in",
        "mlp_hc_inject": "moe_inject",
        "mixer_out": "mixer_out",
        "moe_out": "moe_out",
        "experts": "moe.experts",
        "expert_weights": "moe.weights",
        "ple_rows": "ple.rows",
        "ple_dot": "ple.dot",
        "ple_out": "ple.out",
    }
    for key in expected:
        layer, _, part = key.partition(".")
        if part in same:
            found[key] = step.live(step.values[f"layer.{layer[5:]}.{same[part]}"])
    found["final_hidden"] = step.live(step.values["final"])
    for key, value in expected.items():
        if key.split(".")[-1] in ("groups", "group_scores", "pooled_keys"):
            continue
        array = np.array(found[key])
        if np.issubdtype(value.dtype, np.integer):
            assert np.array_equal(array, value), key
        else:
            assert np.abs(array - value).max() <= TOLERANCE, key


def test_index_of_every_query(name: str) -> None:
    expected = golden.arrays(name, "trace")
    model = golden.model(name)
    r = model.config.group_size
    runner = Runner(model)
    step = runner.step(golden.arrays(name, "full")["tokens"])
    for stage in runner.stages:
        stage.run(step)
    layers = [n for n, kind in enumerate(model.config.layers) if kind == "qsa"]
    assert layers
    for n in layers:
        wanted = expected[f"layer{n}.group_scores"]
        scores = np.array(step.live(step.values[f"layer.{n}.qsa.scores"]))[:, : wanted.shape[1]]
        complete = np.isfinite(wanted)
        assert np.abs(scores - wanted)[complete].max() <= TOLERANCE
        chosen = np.array(step.live(step.values[f"layer.{n}.qsa.groups"]))
        count = (np.arange(len(chosen)) + 1) // r
        chosen = np.where(chosen < count[:, None], chosen, -1)
        assert np.array_equal(chosen, expected[f"layer{n}.groups"])
        pooled = np.array(step.values[f"layer.{n}.qsa.pooled"])
        angles = model.rotary.angles(np.arange(len(pooled), dtype=np.int64) * r)
        turned = np.array(rotate(mx.array(pooled), angles))
        assert np.abs(turned - expected[f"layer{n}.pooled_keys"]).max() <= TOLERANCE
