"""Sessions against what transformers computed: logits of every token, and every state array."""

from __future__ import annotations

import numpy as np
import pytest

from engine.engine import Engine, append
from engine.graph.rotary import rotate
from engine.ops import Fork
from engine.owners.fixed import FixedOwner
from engine.owners.positional import PositionalOwner
from tests.helpers import golden
from tests.helpers.engines import batch, good, session

TOLERANCE = 2e-5
MODES = ("inspect", "fast")

pytestmark = pytest.mark.parametrize("name", golden.MODELS)


def agree(found: np.ndarray, expected: np.ndarray) -> None:
    """Within the tolerance everywhere, and the same best token in every row."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCE
    assert np.array_equal(found.argmax(-1), expected.argmax(-1))


def logits(engine: Engine, seq: int, start: int, tokens: list[int]) -> np.ndarray:
    """Logits of tokens that are appended as one transaction."""
    vocab = engine.model.config.vocab_size if engine.model else 0
    sink = np.full((len(tokens), vocab), 77.0, np.float32)
    good(engine, append(seq, start, tokens), sink=sink)
    return sink


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", ["full", "token", "chunks0", "chunks1", "chunks2"])
def test_every_chunking(name: str, case: str, mode: str) -> None:
    engine = session(name, mode=mode, prove="failures")
    tokens = golden.arrays(name, "full")["tokens"]
    rows, at = [], 0
    for part in golden.cut(tokens, golden.feeds(name, case)):
        rows.append(logits(engine, 0, at, part))
        at += len(part)
    agree(np.concatenate(rows), golden.arrays(name, case)["logits"])
    engine.audit()


@pytest.mark.parametrize("case", ["chunks0", "chunks1"])
def test_chunks_inside_one_transaction(name: str, case: str) -> None:
    tokens = [int(t) for t in golden.arrays(name, "full")["tokens"]]
    for chunk in (1, 5, 64):
        engine = session(name, mode="fast")
        sink = np.zeros((len(tokens), engine.model.config.vocab_size), np.float32)  # type: ignore[union-attr]
        good(engine, append(0, 0, tokens, chunk), sink=sink)
        agree(sink, golden.arrays(name, "full")["logits"])
        assert engine.flips == 1


@pytest.mark.parametrize("mode", MODES)
def test_interleaved_turns(name: str, mode: str) -> None:
    engine = session(name, mode=mode)
    steps = next(c["steps"] for c in golden.manifest(name)["cases"] if c["name"] == "turns")
    seqs = {n: i for i, n in enumerate(dict.fromkeys(s["sequence"] for s in steps))}
    at = dict.fromkeys(seqs, 0)
    rows = []
    for step in steps:
        who = step["sequence"]
        rows.append(logits(engine, seqs[who], at[who], step["tokens"]))
        at[who] += len(step["tokens"])
    agree(np.concatenate(rows), golden.arrays(name, "turns")["logits"])


def test_two_continuations_of_one_prefix(name: str) -> None:
    prefix = golden.feeds(name, "fork_a")[0]
    engine = session(name)
    tokens = [int(t) for t in golden.arrays(name, "fork_a")["tokens"]]
    first = logits(engine, 0, 0, tokens[:prefix])
    good(engine, batch(Fork(0, 1), Fork(0, 2)))
    for seq, case in ((1, "fork_a"), (2, "fork_b")):
        rest = [int(t) for t in golden.arrays(name, case)["tokens"]][prefix:]
        rows = np.concatenate([first, logits(engine, seq, prefix, rest)])
        agree(rows, golden.arrays(name, case)["logits"])


def test_greedy_continuation(name: str) -> None:
    data = golden.arrays(name, "greedy")
    engine = session(name, mode="fast")
    tokens = [int(t) for t in data["prompt"]]
    rows = [logits(engine, 0, 0, tokens)[-1]]
    ids = [int(rows[-1].argmax())]
    while len(ids) < len(data["ids"]):
        at = len(tokens) + len(ids) - 1
        rows.append(logits(engine, 0, at, [ids[-1]])[-1])
        ids.append(int(rows[-1].argmax()))
    assert ids == data["ids"].tolist()
    agree(np.stack(rows), data["logits"])


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("first", [0, 9, 4096])
def test_left_padded_rows_are_runs_that_start_later(name: str, row: int, first: int) -> None:
    data = golden.arrays(name, "leftpad")
    live = data["mask"][row].astype(bool)
    pads = int((~live).sum())
    engine = session(name)
    parts = [logits(engine, 3, first, [int(t) for t in data["ids"][row][live]])]
    for token in data["next_ids"][row]:
        view = engine.snapshot().sequences[0]
        assert (view.padding, view.evicted) == (first, 0)
        parts.append(logits(engine, 3, view.stop, [int(token)]))
    agree(np.concatenate(parts), data["logits"][row, pads:])


def test_state_after_every_snapshot(name: str) -> None:
    tokens = [int(t) for t in golden.arrays(name, "full")["tokens"]]
    expected = golden.arrays(name, "states")
    counts = sorted({int(k.split(".")[0][2:]) for k in expected})
    compared = set()
    for count in counts:
        engine = session(name, mode="fast")
        good(engine, append(0, 0, tokens[:count]))
        for key, value in expected.items():
            at, layer, what = key.split(".")
            if int(at[2:]) != count:
                continue
            found = state(engine, int(layer.removeprefix("layer")), what, count)
            assert found.shape == value.shape, key
            if np.issubdtype(value.dtype, np.integer):
                assert np.array_equal(found, value), key
            elif value.size:
                assert np.abs(found - value).max() <= TOLERANCE, key
            compared.add(key)
    assert compared == set(expected)


def state(engine: Engine, layer: int, what: str, count: int) -> np.ndarray:
    """A state array of sequence 0 in the layout of the goldens."""
    bank = engine.pair.public_bank
    fixed = {
        "gdn_conv": "gdn.conv",
        "gdn_state": "gdn.recurrent",
        "ple_ids": "ple.history",
        "ple_conv": "ple.conv",
    }
    if what in fixed:
        owner = bank.owners[fixed[what]]
        assert isinstance(owner, FixedOwner)
        found = owner.host(0, layer)
        assert found is not None
        return found
    owner_name, part = ("qsa.index", "raw") if what == "index_keys" else ("qsa.kv", what)
    table = bank.owners[owner_name]
    assert isinstance(table, PositionalOwner)
    rows = table.host((layer, part), bank.look(0), 0, count)
    if what == "index_keys":
        return rows
    if what == "k":
        import mlx.core as mx

        model = engine.model
        assert model is not None
        cos, sin = model.rotary.table(0, 1, count)
        angles = (cos[:count, None], sin[:count, None])
        rows = np.array(rotate(mx.array(rows), angles))
    return rows.transpose(1, 0, 2)
