"""Reading scenarios: any bytes give a scenario or one sentence; strict fields; JSON and TOML."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.cases import dump, load, parse
from engine.errors import Malformed
from engine.opjson import FORMS, from_json, to_json
from engine.ops import Append, Fail, Fork, Op, Remove, Shift, Transaction
from engine.replay import replay
from engine.rules import judge
from engine.terms import FailKind

CASES = sorted((Path(__file__).parent.parent / "data" / "cases").glob("*.json"))
SEED = int(os.environ.get("BANKFLIP_SEED", "20261129"))
OPS: dict[str, dict[str, Any]] = {
    "append": {"op": "append", "seq": 0, "positions": [0, 1], "tokens": [5, 6], "chunk": 1},
    "remove": {"op": "remove", "seq": 0, "start": 1, "stop": None},
    "evict_front": {"op": "evict_front", "seq": 0, "count": 1},
    "rewind": {"op": "rewind", "seq": 0, "to": 1},
    "shift": {"op": "shift", "seq": 0, "delta": -1, "start": None, "stop": None},
    "fork": {"op": "fork", "src": 0, "dst": 1, "stop": None},
    "copy": {"op": "copy", "src": 0, "dst": 1, "start": 0, "stop": 1},
    "reset": {"op": "reset", "seq": 0},
    "save": {"op": "save", "seq": 0, "slot": "a"},
    "restore": {"op": "restore", "seq": 0, "slot": "a"},
    "transaction": {"op": "transaction", "ops": [{"op": "reset", "seq": 0}]},
    "fail": {
        "op": "fail",
        "stage": "write",
        "kind": "oom",
        "during": {"op": "reset", "seq": 0},
        "times": "always",
    },
}
OPTIONAL = {"tokens", "chunk", "start", "stop", "times"}


def test_every_op_is_in_this_table() -> None:
    assert set(OPS) == set(FORMS)


@pytest.mark.parametrize("name", OPS)
def test_ops_survive_the_way_to_json_and_back(name: str) -> None:
    op = from_json(OPS[name])
    assert op.name == name
    assert from_json(to_json(op)) == op
    assert to_json(op) == OPS[name]


@pytest.mark.parametrize("name", OPS)
def test_every_field_is_needed_or_has_its_default(name: str) -> None:
    for field in OPS[name]:
        less = {key: value for key, value in OPS[name].items() if key != field}
        if field in OPTIONAL:
            from_json(less)
        else:
            with pytest.raises(Malformed, match=r"op 4.*(missing|unknown)"):
                from_json(less, 4)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("wrong", [1.0, True, "x\ud800", {}, [None], [[]], -(2**5000), 1.5])
def test_a_field_of_the_wrong_type_is_malformed(name: str, wrong: Any) -> None:
    for field in OPS[name]:
        if wrong == [None] and field == "ops":
            continue
        with pytest.raises(Malformed, match="op 4"):
            from_json({**OPS[name], field: wrong}, 4)


@pytest.mark.parametrize("name", OPS)
def test_an_unknown_field_is_malformed(name: str) -> None:
    with pytest.raises(Malformed, match=r"op 0 .*a field is unknown, expected .*found 'sequence'"):
        from_json({**OPS[name], "sequence": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        "append",
        {},
        {"op": "trim", "seq": 0},
        {"op": ["append"], "seq": 0},
        {"op": "append", "seq": -1, "positions": [0]},
        {"op": "append", "seq": 2**31, "positions": [0]},
        {"op": "append", "seq": 0, "positions": []},
        {"op": "append", "seq": 0, "positions": [0, 1], "tokens": [4]},
        {"op": "append", "seq": 0, "positions": [0], "tokens": [-4]},
        {"op": "append", "seq": 0, "positions": [0], "chunk": 0},
        {"op": "evict_front", "seq": 0, "count": None},
        {"op": "save", "seq": 0, "slot": "a" * 1001},
        {"op": "transaction", "ops": [{"op": "transaction", "ops": []}]},
        {"op": "transaction", "ops": [OPS["fail"]]},
        {**OPS["fail"], "during": OPS["fail"]},
        {**OPS["fail"], "during": {"op": "transaction", "ops": [OPS["fail"]]}},
        {**OPS["fail"], "kind": "none"},
        {**OPS["fail"], "times": 0},
        {**OPS["fail"], "times": "once"},
    ],
)
def test_what_is_no_op_is_malformed(wrong: Any) -> None:
    with pytest.raises(Malformed) as caught:
        from_json(wrong, 3, "some.json")
    sentence = str(caught.value)
    assert sentence.startswith("some.json: op 3")
    assert "\n" not in sentence
    assert len(sentence) < 400


def test_absent_ends_are_open() -> None:
    assert from_json({"op": "remove", "seq": 0}) == Remove(0, None, None)
    assert from_json({"op": "shift", "seq": 0, "delta": 2}) == Shift(0, 2)
    assert from_json({"op": "fork", "src": 0, "dst": 1}) == Fork(0, 1)


def test_huge_positions_are_judged_not_malformed() -> None:
    op = from_json({"op": "append", "seq": 0, "positions": [2**70]})
    scenario = parse(json.dumps({"capacity": 4, "ops": [to_json(op)]}).encode())
    assert replay(scenario).results == ("rejected: too-large",)


def scenario(**fields: Any) -> bytes:
    return json.dumps({"capacity": 8, "ops": [OPS["reset"]], **fields}).encode()


END = {"run": [0, 3], "complete_groups": 1, "tail": 0, "holes": []}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{",
        b'{"ops": []}',
        b'{"capacity": 4}',
        b'{"capacity": 4, "capacity": 5, "ops": []}',
        b'{"capacity": NaN, "ops": []}',
        b'{"capacity": 1e3, "ops": []}',
        b'{"capacity": 4, "ops": [' + b"[" * 100_000,
        b'{"capacity": ' + b"9" * 5000 + b', "ops": []}',
        b'{"capacity": ' + b"9" * 4000 + b', "ops": []}',
        scenario(capacity=0),
        scenario(capacity=True),
        scenario(group_size=0),
        scenario(window=6),
        scenario(window=0),
        scenario(window=-4),
        scenario(chunk=0),
        scenario(windw=8),
        scenario(title=3),
        scenario(case=["x"]),
        scenario(model=1),
        scenario(model=""),
        scenario(ops={}),
        scenario(ops=[[]]),
        scenario(expect={}),
        scenario(expect=[]),
        scenario(expect=["ok", "ok"]),
        scenario(expect=["fine"]),
        scenario(expect=["gap"]),
        scenario(expect=["rejected: ok"]),
        scenario(expect=["rejected: hole"]),
        scenario(expect=[None]),
        scenario(expect=["ok", {}]),
        scenario(expect=["ok", {"final": []}]),
        scenario(expect=["ok", {"final": {}, "more": 1}]),
        scenario(expect=["ok", {"final": {"x": END}}]),
        scenario(expect=["ok", {"final": {"00": END}}]),
        scenario(expect=["ok", {"final": {"\u0663": END}}]),
        scenario(expect=["ok", {"final": {"0": {**END, "run": [0]}}}]),
        scenario(expect=["ok", {"final": {"0": {**END, "run": "0-3"}}}]),
        scenario(expect=["ok", {"final": {"0": {**END, "tail": -1}}}]),
        scenario(expect=["ok", {"final": {"0": {**END, "groups": 1}}}]),
        scenario(expect=["ok", {"final": {"0": {"run": None}}}]),
        scenario(expect=["ok", {"final": {"0": {**END, "holes": [[1]]}}}]),
        scenario(expect=[{"final": {}}, "ok"]),
    ],
    ids=lambda content: repr(content[:60]),
)
def test_what_is_no_scenario_is_malformed_in_one_sentence(content: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        parse(content, "s.json")
    sentence = str(caught.value)
    assert sentence.startswith("s.json: ")
    assert "\n" not in sentence
    assert len(sentence) < 500


@pytest.mark.parametrize("depth", [2, 20, 200, 400, 900, 5000])
@pytest.mark.parametrize("name", ["fail", "transaction"])
def test_nested_ops_are_malformed_at_any_depth(name: str, depth: int) -> None:
    fail = b'{"op":"fail","stage":"write","kind":"oom","during":', b"}"
    head, tail = fail if name == "fail" else (b'{"op":"transaction","ops":[', b"]}")
    content = b'{"capacity":4,"ops":[' + head * depth + b"{}" + tail * depth + b"]}"
    with pytest.raises(Malformed, match=r"can't|nested"):
        parse(content)


def test_a_byte_order_mark_is_no_fault() -> None:
    assert parse(b"\xef\xbb\xbf" + scenario()).capacity == 8


def test_files_are_read_by_their_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        'title = "t"\ncapacity = 8\nwindow = 8\n[[ops]]\nop = "append"\nseq = 0\n'
        "positions = [3, 4]\nchunk = 1\n[[ops]]\nop = 'remove'\nseq = 0\nstop = 4\n"
    )
    found = load(tmp_path / "a.toml")
    assert found.ops == (Append(0, (3, 4), chunk=1), Remove(0, None, 4))
    assert (found.case, found.title, found.window) == ("a", "t", 8)
    (tmp_path / "a.json").write_text((tmp_path / "a.toml").read_text())
    with pytest.raises(Malformed, match="not JSON"):
        load(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "b.json")


def test_toml_dates_and_long_hexadecimal_numbers_are_malformed() -> None:
    for text in ("1979-05-27", "0x" + "f" * 6000, "inf", "nan", "[[1]]"):
        with pytest.raises(Malformed):
            parse(f"capacity = {text}\nops = []".encode(), toml=True)


def test_random_bytes_never_do_worse_than_malformed(long_profile: bool) -> None:
    choice = random.Random(SEED)
    contents = [file.read_bytes() for file in CASES]
    words = [b"null", b"-1", b"1e9", b"[]", b"{}", b'"ok"', b"99999999999999999999", b"true"]
    print(f"seed {SEED}")
    sound, sentences = 0, []
    for _ in range(60_000 if long_profile else 4_000):
        content = bytearray(choice.choice(contents))
        for _ in range(choice.choice((1, 1, 2, 5))):
            at = choice.randrange(len(content))
            kind = choice.randrange(4)
            if kind == 0:
                content[at] = choice.randrange(256)
            elif kind == 1:
                del content[at : at + choice.randrange(1, 30)]
            elif kind == 2:
                content[at:at] = choice.choice(words)
            else:
                content[at : at + 1] = b"%d" % choice.randrange(-9, 20)
        try:
            found = parse(bytes(content), toml=choice.random() < 0.1)
            replay(found)
            sound += 1
        except Malformed as error:
            sentences.append(str(error))
    assert sound > 100
    assert not [sentence for sentence in sentences if "\n" in sentence]


numbers = st.integers(-3, 14) | st.sampled_from([2**31 - 1, 2**31, 2**63, -(2**63)])
ends = st.none() | numbers
seqs = st.integers(0, 3)
plain = st.one_of(
    st.builds(Append, seqs, st.lists(numbers, min_size=1, max_size=6)),
    st.builds(Remove, seqs, ends, ends),
    st.builds(Shift, seqs, numbers, ends, ends),
    st.builds(Fork, seqs, seqs, ends),
    *(st.just(from_json(OPS[name])) for name in ("copy", "save", "restore", "rewind")),
)
inner = plain | st.builds(lambda ops: Transaction(tuple(ops)), st.lists(plain, max_size=4))
ops = inner | st.builds(Fail, st.just("write"), st.sampled_from(FailKind), inner)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(ops, max_size=8))
def test_any_ops_survive_a_file_and_can_be_replayed(made: list[Op]) -> None:
    value = {"capacity": 9, "ops": [to_json(op) for op in made], "note": 'ä " \\ \u2028'}
    found = parse(json.dumps(value).encode(), "f.json")
    assert found.ops == tuple(made)
    assert parse(dump(found).encode(), "f.json") == found
    result = replay(found)
    for op, history, word in zip(made, result.histories, result.results, strict=True):
        history.check()
        assert word == "ok" or word.startswith("rejected: ")
        judge(history, op)
