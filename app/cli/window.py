"""`bankflip [FILE...]`: the window, with files of any known kind opened in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from app.cli import COMMANDS
from app.main import Start, run_window

NO_COMMAND = ", nor a command of that name (bankflip --help lists them)"


def parser() -> argparse.ArgumentParser:
    """Arguments of the window."""
    result = argparse.ArgumentParser(
        prog="bankflip", description="Open the window; see `bankflip --help` for the subcommands."
    )
    result.add_argument("files", nargs="*", metavar="FILE", help="what to open in it")
    result.add_argument(
        "--fresh", action="store_true", help="default settings, and none are written"
    )
    result.add_argument(
        "--theme", choices=("system", "light", "dark", "contrast"), default="", help="colours"
    )
    result.add_argument(
        "--log-level",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        default="INFO",
        help="how much goes into the log",
    )
    result.add_argument("--debug", action="store_true", help="show tracebacks")
    return result


def _hint(name: str) -> str:
    """What else a name could have meant that is no file."""
    if Path(name).exists():
        return ""
    if name in {command for command, *_ in COMMANDS}:
        return f"; {name} is a command, which comes first: bankflip {name} --help"
    return NO_COMMAND


def main(arguments: Sequence[str]) -> int:
    """Open the window; 2 without a display or with a file that is not there."""
    args = parser().parse_args(list(arguments))
    if args.files:
        from app.models.opening import kind_of

        unreadable = [v.reason for v in map(kind_of, map(Path, args.files)) if v.kind is None]
        if unreadable:
            print(f"bankflip: {unreadable[0]}{_hint(args.files[0])}", file=sys.stderr)
            return 2
    return run_window(
        Start(tuple(args.files), fresh=args.fresh, log_level=args.log_level, theme=args.theme)
    )
