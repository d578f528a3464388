"""`python -m app` and the `bankflip` command: choose a subcommand, turn errors into statuses."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import io
import sys
from collections.abc import Sequence

from app import given
from app.cli import COMMANDS
from app.cli.common import sentence as one_sentence
from engine.errors import EngineError, InvariantBroken, Rejected, StepFailed
from engine.terms import FailKind

VERSION = "0.1.0"
EXIT_OK, EXIT_REFUSED, EXIT_UNREADABLE, EXIT_BUG, EXIT_CANCELLED = 0, 1, 2, 3, 130


class CommandHelp(argparse.HelpFormatter):
    """Leaves the longest command its line; argparse forgets how far commands are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The command line; arguments of a subcommand are added only for `only` (None: for all)."""
    parser = argparse.ArgumentParser(
        prog="bankflip",
        usage="bankflip [FILE...] [--theme NAME] [--fresh] [--log-level LEVEL]\n"
        "       bankflip COMMAND ... (bankflip COMMAND --help says more)",
        formatter_class=lambda prog: CommandHelp(prog, max_help_position=24, width=96),
        description="Inspect the state of LLM inference: runs, groups, holes and two banks. "
        "Without a command the window opens, with files of any known kind in it.",
        epilog="Options of the window: --theme system, light, dark or contrast; --fresh: default "
        "settings, and none are written; --log-level DEBUG, INFO, WARNING or ERROR. Exit status: "
        "0 sound, 1 refused or unsound, 2 unreadable or wrong usage, 3 a bug of ours, 130 "
        "cancelled.",
    )
    parser.add_argument("--version", action="version", version=f"bankflip {VERSION}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog="bankflip")
    for name, module, line in COMMANDS:
        if importlib.util.find_spec(module) is None:
            continue
        sub = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        sub.add_argument("--debug", action="store_true", help="show tracebacks")
        if only in (None, name):
            importlib.import_module(module).add_arguments(sub)
    return parser


def status_of(error: BaseException) -> int:
    """Exit status for an error that ended a command."""
    if isinstance(error, InvariantBroken):
        return EXIT_BUG
    if isinstance(error, KeyboardInterrupt):
        return EXIT_CANCELLED
    if isinstance(error, StepFailed):
        return EXIT_CANCELLED if error.kind is FailKind.CANCEL else EXIT_REFUSED
    if isinstance(error, Rejected):
        return EXIT_REFUSED
    if isinstance(error, (EngineError, OSError, MemoryError)):
        return EXIT_UNREADABLE
    return EXIT_BUG


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Parse and run one subcommand; errors become one sentence on stderr and a status."""
    args = build_parser(name).parse_args(list(arguments))
    module = next(module for command, module, _ in COMMANDS if command == name)
    try:
        return int(importlib.import_module(module).run(args))
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_OK
    except BaseException as error:
        if isinstance(error, (SystemExit, GeneratorExit)) or args.debug:
            raise
        sentence = "cancelled" if isinstance(error, KeyboardInterrupt) else str(error)
        if isinstance(error, MemoryError):
            sentence = f"not enough memory: {error}".removesuffix(": ")
        elif not isinstance(error, (EngineError, OSError, KeyboardInterrupt)):
            sentence = f"internal error: {type(error).__name__}: {error} (--debug shows where)"
        print(f"bankflip {name}: {one_sentence(sentence)}", file=sys.stderr)
        return status_of(error)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status of `architecture`'s command line table."""
    try:
        return _main(argv)
    except KeyboardInterrupt:  # while a command's module was being imported
        if "--debug" in (sys.argv[1:] if argv is None else argv):
            raise
        print("bankflip: cancelled", file=sys.stderr)
        return EXIT_CANCELLED


def _main(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    given.arguments = arguments
    for stream in (sys.stdout, sys.stderr):
        # a terminal that lacks a sign shows another one; it must not end the program
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # names of files need not be UTF-8
    names = [name for name, _, _ in COMMANDS]
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command in names:
        return run_command(command, arguments)
    if any(word in ("-h", "--help", "--version") for word in arguments):
        build_parser("").parse_args(arguments)
    window = importlib.import_module("app.cli.window")
    return int(window.main(arguments))


if __name__ == "__main__":
    sys.exit(main())
