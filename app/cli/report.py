"""`bankflip report`: a report with pictures, made without a display."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from app.cli.common import UsageError, make_folder, sentence, whole_number
from app.cli.run import add_session_arguments, shipped

HELP = "make a report with pictures from a file"

EPILOG = """FILE is a capture, a scenario (or the name of one that ships), a saved session, or a
cache file of another engine. DIR gets report.html (one file, nothing fetched), report.pdf,
report.json and pictures/*.png. With SOURCE_DATE_EPOCH the same input gives the same bytes.

examples:
  bankflip report failed-stage --out out
  bankflip report session.bankflip --out out --format html,json --no-text --theme dark

The exit status says how the subject is: 0 sound, 1 unsound or not as expected, 2 unreadable."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from app.report.write import FORMATS, THEMES

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("file", metavar="FILE", help="what to report on")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder to write to")
    parser.add_argument(
        "--format",
        metavar="LIST",
        default=",".join(FORMATS),
        help=f"any of {', '.join(FORMATS)} with commas (all)",
    )
    parser.add_argument("--theme", choices=THEMES, default="light", help="colours (light)")
    parser.add_argument("--no-text", action="store_true", help="leave token ids out")
    parser.add_argument(
        "--group-size",
        metavar="N",
        type=whole_number(1, 1 << 20),
        default=4,
        help="positions in a group, for files of other engines (4)",
    )
    parser.add_argument("--arch", metavar="NAME", help="architecture, for llama.cpp files")
    parser.add_argument(
        "--bookmarks",
        metavar="F.json",
        type=Path,
        help="bookmarks and notes to list (FILE.bookmarks.json where that is there)",
    )
    add_session_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the report; the status says how the subject is."""
    from app.report.mark_facts import beside, mark_facts, read_marks
    from app.report.sources import open_subject
    from app.report.write import date_of_report, write

    formats = chosen_formats(args.format)
    date_of_report()
    path = Path(args.file)
    if not path.exists() and args.file in shipped():
        path = shipped()[args.file]
    if args.bookmarks is not None and not args.bookmarks.exists():
        raise UsageError(f"{args.bookmarks}: there is no such file")
    marks = read_marks(args.bookmarks or beside(path))
    subject = open_subject(
        path,
        with_text=not args.no_text,
        backend=args.backend,
        model=args.model,
        group_size=args.group_size,
        architecture=args.arch,
    )
    facts = replace(subject.facts, marks=mark_facts(marks, subject.newest))
    subject = replace(subject, facts=facts)
    written = write(subject, make_folder(args.out), formats, args.theme)
    print(subject.facts.verdict)
    if subject.status == 2:
        print(f"bankflip report: {sentence(f'{path}: {subject.facts.verdict}')}", file=sys.stderr)
    for file in written:
        if file.parent == args.out:
            print(f"  {file}")
    pictures = len(written) - sum(file.parent == args.out for file in written)
    if pictures:
        print(f"  {args.out / 'pictures'}: {pictures} pictures")
    return subject.status


def chosen_formats(text: str) -> tuple[str, ...]:
    """The formats asked for, in the usual order. Raises: UsageError."""
    from app.report.write import FORMATS

    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in FORMATS]
    if unknown or not words:
        given = unknown[0][:40] if unknown else "nothing"
        raise UsageError(f"--format: expected any of {', '.join(FORMATS)}, given {given}")
    return tuple(name for name in FORMATS if name in words)
