"""`bankflip generate`: run a model over tokens, each chunk one transaction."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app import about
from app.cli.common import (
    BACKENDS,
    UsageError,
    atomic_file,
    check_output,
    one_line,
    whole_number,
)
from app.models.text import plural
from app.play import OnRecord, full_json
from engine.capture import CaptureWriter
from engine.engine import Engine, append
from engine.errors import EngineError, Unreadable
from engine.lm_folder import is_lm_folder
from engine.opening import builtin_models, open_engine
from engine.small_file import content_of
from engine.snapshot import Record

HELP = "run a model transactionally"

EPILOG = """MODEL is a folder with config.json and safetensors, or a built-in name: {names}.
Any other model folder is run by mlx-lm (pip install 'bankflip[mlx-lm]'), every chunk a transaction.

examples:
  bankflip generate qwen4exp-tiny --tokens 11,23,5,8 --steps 8
  bankflip generate DIR --tokens-file prompt.json --chunk 5 --logits out.npy --json
  bankflip generate MLX_DIR --prompt "The two banks" --steps 50"""

MAX_TOKEN = 2**31 - 1


class Refused(EngineError):
    """A chunk was refused or failed; what was published before it stands."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.sentence)
        self.record = record


@dataclass(slots=True)
class Result:
    """What a generation gave."""

    prompt: list[int]
    generated: list[int] = field(default_factory=list)
    consumed: int = 0
    logits: list[npt.NDArray[np.float32]] = field(default_factory=list)
    seconds: float = 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG.format(names=", ".join(builtin_models()))
    parser.add_argument("model", metavar="MODEL", help="model folder or built-in name")
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--tokens", metavar="1,2,3", help="token ids of the prompt")
    prompt.add_argument(
        "--tokens-file", metavar="F.json", type=Path, help="the same as a JSON list in a file"
    )
    prompt.add_argument(
        "--prompt",
        metavar="TEXT",
        help="text, for a folder with a tokenizer; --steps then ends at its end-of-text id",
    )
    parser.add_argument(
        "--steps",
        metavar="N",
        type=whole_number(0),
        default=0,
        help="ids to choose greedily after the prompt (0)",
    )
    parser.add_argument(
        "--start", metavar="P", type=whole_number(0), default=0, help="first position (0)"
    )
    parser.add_argument(
        "--chunk", metavar="N", type=whole_number(1), default=64, help="tokens a transaction (64)"
    )
    parser.add_argument(
        "--logits",
        metavar="F.npy",
        type=Path,
        help="write float32 [rows, V], one row a token consumed",
    )
    parser.add_argument("--record", metavar="F", type=Path, help="write a capture of the session")
    parser.add_argument("--no-text", action="store_true", help="leave token ids out of the capture")
    parser.add_argument(
        "--digests", choices=("owner", "layer"), default="owner", help="digests by owner or layer"
    )
    parser.add_argument(
        "--backend", choices=BACKENDS, default="auto", help="device of the model (auto)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON (schemas/generate.json)")


def run(args: argparse.Namespace) -> int:
    """Generate; a refusal ends with status 1 and leaves files of results untouched."""
    foreign = is_lm_folder(args.model)
    if args.prompt is not None and not foreign:
        raise UsageError(f"--prompt: {args.model} has no tokenizer: give --tokens")
    tokens = read_tokens(args) if args.prompt is None else []
    for path in (args.logits, args.record):
        if path is not None:
            check_output(path)
    if foreign:
        from app.cli import generate_lm

        return generate_lm.run(args, tokens)
    engine = open_engine(args.model, backend=args.backend, self_check=True)
    with ExitStack() as stack:
        on_record: OnRecord = lambda record: None  # noqa: E731
        if args.record is not None:
            start = engine.snapshot()
            facts = about.of_session(start, f"generate with {args.model}")
            writer = CaptureWriter(args.record, start, facts, with_text=not args.no_text)
            on_record = stack.enter_context(writer).record
        try:
            result = generate(engine, tokens, args, on_record)
        except Refused as refused:
            print(f"bankflip generate: {refused}", file=sys.stderr)
            return 130 if refused.record.outcome == "cancelled" else 1
    if args.logits is not None:
        with atomic_file(args.logits) as file:
            np.save(file, np.concatenate(result.logits))
    report = to_json(engine, result, args.digests)
    print(json.dumps(report) if args.json else "\n".join(lines(report)))
    return 0


def read_tokens(args: argparse.Namespace) -> list[int]:
    """The prompt's ids. Raises: UsageError, Unreadable, OSError."""
    if args.tokens is not None:
        try:
            values: Any = [int(word) for word in args.tokens.split(",")]
        except ValueError:
            raise UsageError(
                f"--tokens: expected whole numbers with commas, given {args.tokens[:60]!r}"
            ) from None
        where = "--tokens"
    else:
        where = str(args.tokens_file)
        if args.tokens_file.is_dir():
            raise Unreadable(where, "not a list of tokens", "a JSON file", "a folder")
        try:
            values = json.loads(content_of(args.tokens_file))
        except (ValueError, RecursionError) as error:
            sentence = f"not JSON ({one_line(error)[:120]})"
            raise Unreadable(where, sentence, "a list of token ids") from error
    if not isinstance(values, list) or not values:
        raise UsageError(f"{where}: expected a list of at least one token id")
    for number, value in enumerate(values):
        legal = isinstance(value, int) and not isinstance(value, bool)
        if not legal or not 0 <= value <= MAX_TOKEN:
            raise UsageError(
                f"{where}: token {number}: expected a whole number from 0 to {MAX_TOKEN}, "
                f"given {str(value)[:40]}"
            )
    return values


def generate(
    engine: Engine, tokens: list[int], args: argparse.Namespace, on_record: OnRecord
) -> Result:
    """Consume the prompt in chunks, then choose ids greedily. Raises: Refused."""
    result = Result(tokens)
    begun = time.perf_counter()
    for at in range(0, len(tokens), args.chunk):
        consume(engine, result, tokens[at : at + args.chunk], args, on_record)
    for step in range(args.steps):
        if step:
            consume(engine, result, result.generated[-1:], args, on_record)
        last = engine.logits(0)
        assert last is not None
        # the lower index wins a tie, as argmax does
        result.generated.append(int(np.argmax(last)))
    result.seconds = time.perf_counter() - begun
    return result


def consume(
    engine: Engine,
    result: Result,
    tokens: list[int],
    args: argparse.Namespace,
    on_record: OnRecord,
) -> None:
    """One chunk, one transaction."""
    op = append(0, args.start + result.consumed, tokens)
    sink = None
    if args.logits is not None:
        assert engine.model is not None
        sink = np.empty((len(tokens), engine.model.config.vocab_size), np.float32)
    record = engine.apply(op, op_number=engine.n_records, sink=sink)
    on_record(replace(record, op_json=full_json(op)))
    if record.outcome != "ok":
        raise Refused(record)
    result.consumed += len(tokens)
    if sink is not None:
        result.logits.append(sink)


def to_json(engine: Engine, result: Result, digests: str) -> dict[str, Any]:
    """The object of `generate --json`."""
    snapshot = engine.snapshot()
    view = next(iter(snapshot.sequences), None)
    return {
        "tokens": result.prompt,
        "generated": result.generated,
        "transactions": engine.number,
        "flips": snapshot.flips,
        "frontier": view.stop - 1 if view is not None and view.n_live else None,
        "digests": dict(engine.digests(by_layer=digests == "layer")),
        "backend": snapshot.backend,
        "exact": snapshot.exact == "proved",
        "tokens_per_s": round(result.consumed / max(result.seconds, 1e-9), 1),
    }


def lines(report: dict[str, Any]) -> list[str]:
    """What a person reads."""
    width = max(map(len, report["digests"]))
    generated = " ".join(map(str, report["generated"])) or "nothing asked for (--steps)"
    n_consumed = len(report["tokens"]) + max(0, len(report["generated"]) - 1)
    exact = "exact for any chunks" if report["exact"] else "exactness unproved"
    return [
        f"consumed   {plural(n_consumed, 'token')}, frontier {report['frontier']}",
        f"generated  {generated}",
        f"published  {plural(report['transactions'], 'transaction')}, "
        f"{plural(report['flips'], 'flip')}",
        f"backend    {report['backend']}, {exact}, {report['tokens_per_s']:,.1f} tokens/s",
        *(f"digest     {owner:<{width}}  {value}" for owner, value in report["digests"].items()),
    ]
