"""The subcommands of `bankflip`: one module each, listed once in `COMMANDS`.

A module has `HELP` (one line), `add_arguments(parser)` and `run(args) -> int` (the exit status).
Modules are imported only when their command is used, and import Qt only to make a picture.
"""

from __future__ import annotations

COMMANDS: tuple[tuple[str, str, str], ...] = (
    # name, module, one line for `bankflip --help`
    ("demo", "app.cli.demo", "run the tiny model: good chunks, a failed one, a refused hole"),
    ("run", "app.cli.run", "execute scenarios and compare with what they expect"),
    ("check", "app.cli.check", "say whether saved cache state of an engine is whole"),
    ("watch", "app.cli.watch", "follow the live cache events of a server"),
    ("generate", "app.cli.generate", "run a model transactionally"),
    ("sweep", "app.cli.sweep", "try every size around the boundaries of a scenario"),
    ("shrink", "app.cli.shrink", "reduce a failing scenario to a minimal one"),
    ("report", "app.cli.report", "make a report with pictures from a file"),
    ("screenshot", "app.cli.screenshot", "make one picture of the window or a panel"),
    ("bench", "app.cli.bench", "measure side by side"),
    ("doctor", "app.cli.doctor", "say what works on this machine"),
    ("completion", "app.cli.completion", "print a completion script for a shell"),
)
