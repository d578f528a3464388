"""`bankflip demo`: the tiny model with good chunks, a failed one and a refused hole.

In the window where there is a display; else the same script runs here, prints every op with its
proof, and leaves pictures and a report.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from app.cli.common import UsageError, make_folder
from app.cli.display import display_problem
from app.cli.run import add_session_arguments, load
from app.models.text import outcomes, plural
from app.play import Played, engine_for, play
from app.report.words import short_digest
from engine.snapshot import Record

HELP = "run the tiny model: good chunks, a failed one, a refused hole"
SCENARIO = "demo"
OUT = Path("bankflip-demo")

EPILOG = """Without a display the demo prints what happened, with the digests of the public bank
before and after each refusal, and writes a report with pictures into DIR."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="folder for pictures and report, without the window (bankflip-demo)",
    )
    parser.add_argument(
        "--headless", action="store_true", help="without the window, even where there is a display"
    )
    parser.add_argument("--theme", choices=("light", "dark"), help="colours (light)")
    add_session_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """The window, or the same script here."""
    problem = "asked to do without the window" if args.headless else display_problem()
    if not problem:
        return in_window(args)
    args.out = args.out or OUT
    print(f"{problem}; the demo runs here instead")
    # pictures must not look for the display that is not there
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    make_folder(args.out)
    return headless(args)


def in_window(args: argparse.Namespace) -> int:
    """Play in the window. Raises: UsageError for what only the run without it can do."""
    from app.main import Start, run_window

    for name, given in (("out", args.out), ("model", args.model), ("backend", args.backend)):
        if given not in (None, "auto"):
            raise UsageError(f"--{name} goes with --headless: the window has its own way to choose")
    return run_window(Start(demo=True, theme=args.theme or ""))


def headless(args: argparse.Namespace) -> int:
    """Play, tell, prove, and write the report."""
    from app.report.sources import of_played
    from app.report.write import FORMATS, write

    scenario = load(SCENARIO)
    engine = engine_for(scenario, backend=args.backend, model=args.model, self_check=True)
    print(f"\n{scenario.title}\n{engine.name} on {engine.snapshot().backend}\n")
    played = play(scenario, engine, on_record=lambda record: print("\n".join(lines(record))))
    print("\n".join(ending(played)))
    subject = of_played(played)
    files = write(subject, args.out, FORMATS, args.theme or "light")
    pictures = sum(file.suffix == ".png" for file in files)
    print(f"\n{pictures} pictures and a report in {args.out}: open {args.out / 'report.html'}")
    return 0 if played.ok else 1


def lines(record: Record) -> list[str]:
    """One op for a terminal; a refusal with its proof."""
    mark = {"ok": "published", "rejected": "refused  "}.get(record.outcome, "failed   ")
    text = [f"{record.number:>2}  {mark}  {record.sentence}"]
    if record.outcome == "ok":
        return text
    before, after = dict(record.digests_before), dict(record.digests_after)
    same = sum(after.get(owner) == digest for owner, digest in before.items())
    bank = f"public bank {record.public_bank}, {record.flips} flips"
    text.append(f"      {bank}: {same} of {len(before)} digests as before")
    for owner in ("history", "qsa.kv", "gdn.recurrent", "logits"):
        if owner in before:
            then, now = short_digest(before[owner]), short_digest(after.get(owner, ""))
            text.append(f"      {owner:<14} {then} -> {now}")
    return text


def ending(played: Played) -> list[str]:
    """The end in a few lines."""
    refused = [record for record in played.records if record.outcome != "ok"]
    kept = all(record.digests_before == record.digests_after for record in refused)
    proof = "none of these changed a public byte" if kept else "A REFUSAL CHANGED PUBLIC STATE"
    ended = outcomes(record.outcome for record in refused)
    text = ["", f"{plural(played.flips, 'flip')}, {ended}: {proof}"]
    for seq, end in played.final:
        run = "empty" if end.run is None else f"positions {end.run[0]} to {end.run[1]}"
        text.append(
            f"sequence {seq}: {run}, {plural(end.complete_groups, 'group')}, tail {end.tail}"
        )
    return text + [f"not as expected: {problem}" for problem in played.mismatches]
