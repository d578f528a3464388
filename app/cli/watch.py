"""`bankflip watch`: follow the live cache events of servers, or the files of a folder."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.cli.check import add_reading_arguments, options_of
from app.cli.check_text import finding_line, report_lines
from engine.errors import Unreadable
from engine.formats.follow import Follower
from engine.formats.kv_events.live import Watch
from engine.formats.options import Options
from engine.formats.report import Finding, Report

HELP = "follow the live cache events of a server"
CANCELLED = 130
POLL_S = 0.25
LONGEST_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "addresses", metavar="ADDRESS", nargs="+", help="tcp://HOST:PORT, or a folder or file"
    )
    parser.add_argument(
        "--replay",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="replay socket; once for each address, in their order",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    add_reading_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Stream what changes until Ctrl-C; the status is then that of a cancelled command."""
    servers = [address for address in args.addresses if "://" in address]
    paths = [Path(address) for address in args.addresses if "://" not in address]
    for path in paths:
        if not path.exists():
            raise Unreadable(str(path), "neither an address nor a folder or file")
    if len(args.replay) > len(servers):
        raise Unreadable(args.replay[-1], f"a replay without an address ({len(servers)} given)")
    options = options_of(args)
    out = Output(args.json)
    if threading.current_thread() is threading.main_thread():
        # a shell starts background jobs with Ctrl-C ignored; here it is the way to end
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if servers and paths:
            raise Unreadable(str(paths[0]), "watch addresses or folders, not both at once")
        if servers:
            watch_servers(tuple(servers), tuple(args.replay), options, out)
        else:
            watch_paths(tuple(paths), options, out)
    except KeyboardInterrupt:
        out.end()
    return CANCELLED


class Output:
    """Prints findings as they come and go, each with its source."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.last: dict[str, Report] = {}

    def write(self, record: dict[str, Any], text: str) -> None:
        print(json.dumps(record) if self.as_json else text, flush=True)

    def show(self, name: str, report: Report) -> None:
        """Print what differs from the last report of the same name."""
        before, self.last[name] = self.last.get(name), report
        old = set(before.findings) if before is not None else set()
        for finding in [own for own in report.findings if own not in old]:
            self.finding(name, "new", finding)
        for finding in [own for own in old if own not in set(report.findings)]:
            self.finding(name, "gone", finding)
        if before is None or before.verdict != report.verdict:
            record = {"source": name, "state": "verdict", "verdict": report.verdict}
            self.write({**record, "reason": report.reason}, f"{name}: {report.verdict}")

    def finding(self, name: str, state: str, finding: Finding) -> None:
        record = {
            "source": name,
            "state": state,
            "code": finding.code.value,
            "words": finding.words,
            "sequence": finding.sequence,
            "part": finding.part,
            "position": finding.position,
        }
        self.write(record, f"{name}: {state} {finding_line(finding)}")

    def gone(self, name: str) -> None:
        self.last.pop(name, None)
        self.write({"source": name, "state": "removed"}, f"{name}: removed")

    def end(self) -> None:
        """The last report of every source."""
        for report in self.last.values():
            if self.as_json:
                print(json.dumps({"state": "end", "report": report.to_json()}), flush=True)
            else:
                print("\n".join(report_lines(report)), flush=True)


def watch_servers(
    addresses: tuple[str, ...], replays: tuple[str, ...], options: Options, out: Output
) -> None:
    name = " ".join(addresses)
    with Watch(addresses, replays, options) as watch:
        print(f"watching {name}; Ctrl-C ends", file=sys.stderr, flush=True)
        for report in reports(watch):
            out.show(name, report)


def reports(watch: Watch) -> Iterator[Report]:
    """A report at the start, and when the stream pauses after a change, or at least each second."""
    changed, due = True, 0.0
    while True:
        arrived = watch.poll(POLL_S)
        changed |= arrived
        began = time.monotonic()
        if changed and (not arrived or began > due):
            yield watch.report()
            changed = False
            # a report of many blocks takes its time: most of it belongs to the stream
            due = time.monotonic() + max(LONGEST_S, 5 * (time.monotonic() - began))


def watch_paths(paths: tuple[Path, ...], options: Options, out: Output) -> None:
    follower = Follower(paths, options)
    print(f"watching {' '.join(map(str, paths))}; Ctrl-C ends", file=sys.stderr, flush=True)
    while True:
        for path, report in follower.poll():
            if report is None:
                out.gone(str(path))
            else:
                out.show(str(path), report)
        time.sleep(POLL_S)
