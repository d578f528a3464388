"""`bankflip check`: say whether saved cache state of an engine is whole."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from app.cli.check_text import report_lines
from app.cli.common import sentence
from engine.errors import Unreadable
from engine.formats import Options, Report, open_file, unreadable_report
from engine.formats.report import Code

HELP = "say whether saved cache state of an engine is whole"


EPILOG = """FILE is one of these, found by its content:
  llama.cpp     a saved sequence or context state, or a log of the server
  mlx-lm        a prompt cache (.safetensors)
  transformers  a cache that resources/exporters/transformers_cache.py wrote (.safetensors)
  vLLM, SGLang  recorded cache events (JSON lines)
  bankflip      a saved session or a capture"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("files", metavar="FILE", nargs="+", help="a file, or a folder of files")
    parser.add_argument("--json", action="store_true", help="print a list, one object a file")
    add_reading_arguments(parser)


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of reading that `check` and `watch` share."""
    parser.add_argument(
        "--group-size", type=group_size, default=4, metavar="N", help="positions in a group (4)"
    )
    parser.add_argument(
        "--arch", metavar="NAME", help="architecture, for llama.cpp files that do not name one"
    )
    parser.add_argument(
        "--rows",
        action="store_true",
        help="look for values that are not finite in the rows of llama.cpp files, too",
    )
    parser.add_argument(
        "--last-copy",
        action="store_true",
        help="events: the engine reports a removal only for the last copy of a block",
    )


def group_size(text: str) -> int:
    try:
        size = int(text)
    except ValueError:
        size = 0
    if not 1 <= size <= 1 << 20:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 1048576, given {text!r}")
    return size


def options_of(args: argparse.Namespace) -> Options:
    return Options(
        group_size=args.group_size,
        architecture=args.arch,
        payload=args.rows,
        last_copy_only=args.last_copy,
    )


def check_file(path: str, options: Options) -> Report:
    """Report of one file; one that can't be opened has a report, too."""
    try:
        with open_file(path, options) as opened:
            return opened.report
    except Unreadable as error:
        return unreadable_report(path, error)


def files_of(names: list[str]) -> list[str]:
    """The files named, and the plain files in folders named, in order."""
    files: list[str] = []
    for name in names:
        folder = Path(name)
        if not folder.is_dir():
            files.append(name)
            continue
        files += [str(entry) for entry in sorted(folder.iterdir()) if entry.is_file()]
    return files


def run(args: argparse.Namespace) -> int:
    """Check every file; the status is the worst of them."""
    files = files_of(args.files)
    if not files:
        raise Unreadable(", ".join(args.files), "no files in it")
    options = options_of(args)
    reports = []
    for path in files:
        report = check_file(path, options)
        reports.append(report)
        if not args.json:
            print("\n".join(report_lines(report)))
        if report.codes and report.codes[0] in (Code.UNREADABLE, Code.TRUNCATED):
            told = sentence(f"{report.file}: {report.reason}")
            print(f"bankflip check: {told}", file=sys.stderr)
    if args.json:
        print(json.dumps([report.to_json() for report in reports], indent=1))
    return max(report.exit_status for report in reports)
