"""`bankflip generate` on a folder that mlx-lm runs: text streams, a chunk is a transaction."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app import about
from app.cli import generate
from app.cli.common import UsageError, atomic_file
from app.play import OnRecord, full_json
from engine.capture import CaptureWriter
from engine.lm_folder import open_lm
from engine.ops import Append

if TYPE_CHECKING:
    from engine.lm_session import LmSession


@dataclass(slots=True)
class Generation:
    """What is asked for, and what it gave so far."""

    session: LmSession
    args: argparse.Namespace
    prompt: list[int]
    on_record: OnRecord
    generated: list[int] = field(default_factory=list)
    logits: list[npt.NDArray[np.float32]] = field(default_factory=list)
    consumed: int = 0
    seconds: float = 0.0

    def run(self) -> None:
        """The prompt in chunks, then ids greedily. Raises: Refused."""
        begun = time.perf_counter()
        for at in range(0, len(self.prompt), self.args.chunk):
            self._consume(self.prompt[at : at + self.args.chunk])
        text = Stream(self.session.tokenizer, quiet=self.args.json)
        ends = text.ends if self.args.prompt is not None else set()
        for step in range(self.args.steps):
            if step:
                self._consume(self.generated[-1:])
            logits = self.session.sequences[0].logits
            assert logits is not None
            # the lower index wins a tie, as argmax does
            self.generated.append(int(np.argmax(logits)))
            if self.generated[-1] in ends:
                break
            text.add(self.generated[-1])
        text.end()
        self.seconds = time.perf_counter() - begun

    def _consume(self, tokens: list[int]) -> None:
        start = self.args.start + self.consumed
        op = Append(0, range(start, start + len(tokens)), tuple(tokens))
        record = self.session.apply(op)
        self.on_record(replace(record, op_json=full_json(op)))
        if record.outcome != "ok":
            raise generate.Refused(record)
        self.consumed += len(tokens)
        if self.args.logits is not None:
            self.logits += self.session.new_logits

    def report(self) -> dict[str, Any]:
        """The object of `generate --json`; the owners are the layers."""
        return {
            "tokens": self.prompt,
            "generated": self.generated,
            "transactions": self.session.number,
            "flips": self.session.flips,
            "frontier": self.consumed - 1,
            "digests": dict(self.session.digests(layers_only=True)),
            "backend": self.session.backend,
            "exact": False,
            "tokens_per_s": round(self.consumed / max(self.seconds, 1e-9), 1),
        }


class Stream:
    """Writes each new piece of text as soon as it is whole; ids where there is no tokenizer."""

    def __init__(self, tokenizer: Any | None, *, quiet: bool) -> None:
        self._stream = tokenizer.detokenizer if tokenizer is not None else None
        self._quiet, self._wrote = quiet, False
        self.ends = {int(i) for i in getattr(tokenizer, "eos_token_ids", None) or ()}

    def add(self, token: int) -> None:
        """One more id."""
        if self._stream is None:
            self._write(f"{token} ")
        else:
            self._stream.add_token(token)
            self._write(self._stream.last_segment)

    def end(self) -> None:
        """No more ids: what was held back, and the end of the line."""
        if self._stream is not None:
            self._stream.finalize()
            self._write(self._stream.last_segment)
        if self._wrote:
            print(flush=True)

    def _write(self, piece: str) -> None:
        if piece and not self._quiet:
            print(piece, end="", flush=True)
            self._wrote = True


def run(args: argparse.Namespace, tokens: list[int]) -> int:
    """Generate; a refusal ends with status 1, Ctrl-C with 130, and files stay untouched."""
    wanted = args.record is not None
    session = open_lm(args.model, backend=args.backend, mode="fast", proofs=wanted)
    if args.prompt is not None:
        tokens = encode(session, args.prompt)
    with ExitStack() as stack:
        on_record: OnRecord = lambda record: None  # noqa: E731
        if wanted:
            start = session.snapshot()
            facts = about.of_session(start, f"generate with {args.model}")
            facts["versions"] += f"; mlx-lm {metadata.version('mlx-lm')}"
            writer = CaptureWriter(args.record, start, facts, with_text=not args.no_text)
            on_record = stack.enter_context(writer).record
        work = Generation(session, args, tokens, on_record)
        try:
            work.run()
        except generate.Refused as refused:
            print(f"bankflip generate: {refused}", file=sys.stderr)
            return 130 if refused.record.outcome == "cancelled" else 1
    if args.logits is not None:
        with atomic_file(args.logits) as file:
            np.save(file, np.concatenate(work.logits))
    report = work.report()
    print(json.dumps(report) if args.json else "\n".join(generate.lines(report)))
    return 0


def encode(session: LmSession, text: str) -> list[int]:
    """Ids of a prompt. Raises: UsageError without a tokenizer or without any id."""
    if session.tokenizer is None:
        raise UsageError(f"--prompt: {session.name} has no tokenizer: give --tokens")
    tokens = [int(token) for token in session.tokenizer.encode(text)]
    if not tokens:
        raise UsageError("--prompt: expected a text with at least one token")
    return tokens
