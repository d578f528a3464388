"""`bankflip bench`: run the registered benchmarks and say how each result stands to its goal."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from app.cli.benchmarks import MODULES
from app.cli.common import UsageError, one_line

HELP = "measure side by side"

Result: TypeAlias = Mapping[str, Any]
Benchmark: TypeAlias = Callable[[], "Result | Iterable[Result]"]

DEFAULTS: Mapping[str, Any] = {"goal": None, "ours": None, "peer": None, "peer_name": None}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="run only these, as --list names them (default: all)",
    )
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    parser.add_argument("--json", action="store_true", help="print JSON (schemas/bench.json)")


def run(args: argparse.Namespace) -> int:
    """Run what was asked for; 1 when a benchmark could not be run."""
    known = benchmarks(MODULES)
    if args.list:
        print("\n".join(known))
        return 0
    chosen = choose(known, args.names)
    results: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    for name in chosen:
        if not args.json:
            print(f"{name} ...", file=sys.stderr)
        try:
            found = known[name]()
            for result in (found,) if isinstance(found, Mapping) else found:
                results.append({**DEFAULTS, **result})
        except Exception as error:  # results before it stand
            failed.append({"name": name, "reason": one_line(error)})
    if args.json:
        report: dict[str, Any] = {"machine": machine(), "results": results}
        print(json.dumps({**report, "failed": failed} if failed else report, indent=1))
    else:
        print("\n".join(table(results)))
    for failure in failed:
        print(f"bankflip bench: {failure['name']}: {failure['reason']}", file=sys.stderr)
    return 1 if failed else 0


def benchmarks(modules: Sequence[str]) -> dict[str, Benchmark]:
    """Every registered benchmark by name, in the order of the list."""
    found: dict[str, Benchmark] = {}
    for module in modules:
        found.update(importlib.import_module(module).BENCHMARKS)
    return found


def choose(known: Mapping[str, Benchmark], names: Sequence[str]) -> list[str]:
    """The names asked for; a name also stands for every benchmark that begins with it."""
    if not names:
        return list(known)
    chosen: list[str] = []
    for wanted in names:
        matches = [name for name in known if name == wanted or name.startswith(f"{wanted}.")]
        if not matches:
            raise UsageError(f"no benchmark {wanted!r}, expected one of {', '.join(known)}")
        chosen.extend(name for name in matches if name not in chosen)
    return chosen


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def processor() -> str:
    """The processor's name, as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def verdict(result: Result) -> str:
    """How the value stands to its goal, in words."""
    goal = result["goal"]
    if goal is None:
        return ""
    met = result["value"] <= goal if result["better"] == "lower" else result["value"] >= goal
    bound = "at most" if result["better"] == "lower" else "at least"
    return f"{'meets' if met else 'misses'} the goal of {bound} {goal:g}"


def table(results: Sequence[Result]) -> list[str]:
    """Lines for people."""
    width = max([len(str(result["name"])) for result in results], default=0)
    lines = []
    for result in results:
        peer = ""
        if result["peer"] is not None:
            peer = f"ours {result['ours']:.4g}, {result['peer_name']} {result['peer']:.4g}"
        parts = (f"{result['value']:>10.4g} {result['unit']:<9}", verdict(result), peer)
        lines.append(f"{result['name']:<{width}}  " + "  ".join(part for part in parts if part))
    return lines
