"""The driver of models of mlx-lm, and the one that chooses between it and the engine's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from mlx_lm.models.cache import load_prompt_cache

from engine import commands as c
from engine.capture import Capture
from engine.drivers import AnyDriver
from engine.events import (
    Body,
    FaultsChanged,
    FeedChanged,
    LimitsKnown,
    SessionOpened,
    StagesChanged,
    Trial,
    Trouble,
)
from engine.lm_folder import is_lm_folder
from engine.ops import Append, EvictFront, Fork, Rewind
from engine.progress import CancelToken
from engine.snapshot import ArraySlice, CheckResult, Record, Snapshot
from tests.helpers.mlxlm_models import VOCABULARY, model_folder

PROMPT = tuple(int(i) for i in np.random.default_rng(5).integers(1, VOCABULARY - 1, 30))
T = TypeVar("T")


class Told:
    """A driver, and what it told since the last command."""

    def __init__(self) -> None:
        self.cancel = CancelToken()
        self.bodies: list[tuple[int, Body]] = []
        self.driver = AnyDriver(
            lambda ticket, body: self.bodies.append((ticket, body)), self.cancel
        )

    def do(self, *commands: c.Command) -> None:
        """Commands, each worked off to its end."""
        self.bodies.clear()
        for ticket, command in enumerate(commands, start=7):
            self.driver.handle(command, ticket)
            for _ in range(1000):
                if not self.driver.has_work:
                    break
                self.driver.turn()
            else:
                raise AssertionError(f"{command} never ends")

    def all(self, kind: type[T]) -> list[T]:
        return [body for _, body in self.bodies if isinstance(body, kind)]

    def last(self, kind: type[T]) -> T:
        return self.all(kind)[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("lm") / "hybrid", "qwen3_next")


@pytest.fixture
def told(folder: Path) -> Told:
    told = Told()
    told.do(c.OpenModel(str(folder)))
    return told


def test_opening_tells_stages_owners_and_arrays(told: Told, folder: Path) -> None:
    opened = told.last(SessionOpened)
    assert opened.model == str(folder)
    assert [name for name, kind in opened.stages if kind == "graph"] == [
        f"layer.{n}" for n in range(4)
    ]
    assert dict(opened.owners) == {
        "layer.0": "sequence",
        "layer.1": "position",
        "layer.2": "sequence",
        "layer.3": "position",
        "tokens": "position",
        "logits": "sequence",
    }
    assert ("layer.3", -1, "values") in opened.arrays
    assert opened.n_vocabulary == VOCABULARY
    assert told.last(Snapshot).sequences == ()
    assert {ticket for ticket, _ in told.bodies} == {7}


def test_run_pause_chunks_and_tokens(told: Told) -> None:
    told.do(c.SetChunk(8), c.Feed(0, PROMPT), c.StepToken(), c.StepChunk())
    assert [record.n_tokens for record in told.all(Record)] == [1, 8]
    assert told.last(FeedChanged).queued == ((0, 21),)
    told.do(c.Run(to_position=20))
    assert told.last(Snapshot).sequences[0].stop == 20
    assert not told.last(FeedChanged).running
    told.do(c.Run())
    assert told.last(Snapshot).sequences[0].stop == 30
    assert told.last(FeedChanged).queued == ()
    told.do(c.Run())
    assert "no tokens are queued" in told.last(Trouble).sentence


def test_a_fault_stops_the_run_and_the_tokens_stay_queued(told: Told) -> None:
    told.do(c.SetChunk(10), c.ArmFault("layer.2", "nonfinite", skip=1), c.Feed(0, PROMPT), c.Run())
    records = told.all(Record)
    assert [(record.outcome, record.stage) for record in records] == [
        ("ok", ""),
        ("failed", "layer.2"),
    ]
    assert told.last(FeedChanged).queued == ((0, 20),)
    assert not told.last(FeedChanged).running
    assert told.last(FaultsChanged).faults == ()
    failed = next(view for view in told.last(StagesChanged).stages if view.state == "failed")
    assert failed.name == "layer.2"
    told.do(c.Run())
    assert told.last(Snapshot).sequences[0].stop == 30


def test_arming_what_can_not_happen_is_told(told: Told) -> None:
    for stage, kind, word in (
        ("layer.1", "oom", "structural, nonfinite, command, cancel"),
        ("layer.1", "status", "given status"),
        ("verify", "nonfinite", "structural, command, cancel"),
        ("layer.9", "command", "expected one of reserve"),
    ):
        told.do(c.ArmFault(stage, kind))
        assert word in told.last(Trouble).sentence
        assert not told.all(FaultsChanged)
    told.do(c.ArmFault("layer.1", "command"), c.ArmFault("layer.2", "cancel", 0))
    assert told.last(FaultsChanged).faults == (
        ("layer.1", "command", 1, 0),
        ("layer.2", "cancel", 0, 0),
    )
    told.do(c.ClearFaults("layer.1"))
    assert told.last(FaultsChanged).faults == (("layer.2", "cancel", 0, 0),)


def test_cancelling_from_outside_takes_the_chunk_back(told: Told) -> None:
    told.do(c.Feed(0, PROMPT), c.SetChunk(10), c.StepChunk())
    told.cancel.set()
    told.do(c.StepChunk())
    record = told.last(Record)
    assert record.outcome == "cancelled"
    assert record.digests_before == record.digests_after
    told.do(c.StepChunk())
    assert told.last(Record).outcome == "ok"


def test_ops_trials_undo_and_limits(told: Told) -> None:
    told.do(c.Feed(0, PROMPT), c.SetChunk(30), c.Run())
    told.do(c.Try(Rewind(0, 12)), c.Try(EvictFront(0, 1)), c.Try(Append(0, (40,), (1,))))
    assert [t.record.reason for t in told.all(Trial)] == ["", "not-derivable", "gap"]
    assert told.all(Trial)[0].record.sequences[0].stop == 12
    told.do(c.Do(Rewind(0, 12)), c.Do(Fork(0, 1)), c.Undo(), c.Undo())
    assert [record.outcome for record in told.all(Record)] == ["ok", "ok", "ok"]
    assert [view.seq for view in told.last(Snapshot).sequences] == [0]
    assert "rewind instead" in told.last(Trouble).sentence
    told.do(c.Limits(0))
    limits = {view.op: (view.nearest, view.farthest) for view in told.last(LimitsKnown).limits}
    assert limits["append at"] == (12, 12)
    assert limits["rewind"] == (12, 0)
    assert limits["evict_front"] == (None, None)


def test_arrays_and_checks(told: Told) -> None:
    told.do(c.Feed(0, PROMPT), c.SetChunk(7), c.Run())
    told.do(c.ReadArray("layer.1", -1, "keys", 0), c.ReadArray("logits", -1, "", 0))
    keys, logits = told.all(ArraySlice)
    assert keys.values.shape == (30, 1, 16)
    assert logits.values.shape == (VOCABULARY,)
    told.do(c.ReadArray("layer.1", -1, "keys", 0, "private"))
    assert "one set of caches" in told.last(Trouble).sentence
    told.do(c.RunCheck("same-as-fresh"), c.RunCheck("audit"), c.RunCheck("boundary-sweep"))
    assert [(check.name, check.ok) for check in told.all(CheckResult)] == [
        ("same-as-fresh", True),
        ("audit", True),
    ]
    assert "no groups" in told.last(Trouble).sentence


def test_what_has_no_meaning_is_answered(told: Told, folder: Path, tmp_path: Path) -> None:
    told.do(c.Feed(0, PROMPT), c.StepStage())
    assert "one call" in told.last(Trouble).sentence
    told.do(c.LoadSession(str(tmp_path / "x")), c.Finish(), c.Discard())
    assert len(told.all(Trouble)) == 3
    told.do(c.OpenModel(str(folder), window=8))
    assert "windows of its own" in told.last(Trouble).sentence
    told.do(c.StepChunk())
    assert told.last(Record).outcome == "ok"


def test_a_saved_prompt_cache_is_what_mlx_lm_reads(told: Told, tmp_path: Path) -> None:
    told.do(c.Feed(0, PROMPT), c.SetChunk(30), c.Run(), c.SaveSession(str(tmp_path / "kept")))
    assert told.last(CheckResult).ok
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    (tmp_path / "kept").rename(tmp_path / "kept.safetensors")
    cache = load_prompt_cache(str(tmp_path / "kept.safetensors"))
    assert [type(item).__name__ for item in cache][:2] == ["ArraysCache", "KVCache"]
    assert cache[1].offset == 30
    told.do(c.SaveSession(str(tmp_path / "no" / "kept")))
    assert "can't be written" in told.last(Trouble).sentence


def test_a_capture_holds_every_record(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "c.bankflip"
    told.do(c.StartCapture(str(path)), c.SetChunk(10), c.ArmFault("layer.3", "command", skip=2))
    told.do(c.Feed(0, PROMPT), c.Run(), c.Do(EvictFront(0, 1)), c.StopCapture())
    told_records = told.all(Record)
    with Capture(path) as capture:
        records = list(capture.records())
    assert [record.outcome for record in records] == ["ok", "ok", "failed", "rejected"]
    assert [r.digests_after for r in records] == [r.digests_after for r in told_records]
    assert [r.sequences for r in records] == [r.sequences for r in told_records]


def test_the_folder_decides_and_what_stands_stays(told: Told, folder: Path, tmp_path: Path) -> None:
    assert is_lm_folder(folder)
    assert not is_lm_folder("qwen4exp-tiny")
    assert not is_lm_folder(None)
    for text in ("", "{", "[]", "{}", '{"model_type": 3}', '{"model_type": "qwen4_exp_text"}'):
        (tmp_path / "config.json").write_text(text)
        assert not is_lm_folder(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no_such"}))
    for bad in (str(tmp_path), str(tmp_path / "none")):
        told.do(c.OpenModel(bad))
        assert bad in told.last(Trouble).sentence
        told.do(c.Feed(0, PROMPT[:4]), c.StepChunk())
        assert told.last(Snapshot).model == str(folder)
    told.do(c.OpenModel("qwen4exp-tiny", backend="cpu"), c.Feed(0, PROMPT), c.StepChunk())
    assert told.last(SessionOpened).owners[0][0] == "history"
    assert told.last(Record).outcome == "ok"
    told.do(c.OpenModel(str(tmp_path)), c.StepChunk())
    assert told.last(Snapshot).model == "qwen4exp-tiny"
    told.do(c.OpenModel(str(folder)), c.Feed(0, PROMPT), c.StepChunk())
    assert told.last(Snapshot).model == str(folder)
    told.driver.close()


def test_without_mlx_lm_the_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlx_lm", None)
    told = Told()
    told.do(c.OpenModel(str(folder)))
    assert "pip install 'bankflip[mlx-lm]'" in told.last(Trouble).sentence
