"""Runs the command line in this process or in a child, and checks JSON against its schema."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from app.__main__ import main

ROOT = Path(__file__).parents[2]
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
SCHEMAS = ROOT / "resources" / "schemas"


@dataclass(frozen=True)
class Done:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    def one_sentence(self) -> str:
        """Standard error, which must be one line without a traceback."""
        lines = self.err.strip().splitlines()
        assert "Traceback" not in self.err, self.err
        assert "internal error" not in self.err, self.err
        assert len(lines) == 1, self.err
        return lines[0]


def ended_by_ctrl_c(process: subprocess.Popen[str], timeout: float = 120) -> tuple[str, str]:
    """What a running command writes until it has ended; killed when it does not."""
    with process:
        try:
            process.send_signal(signal.SIGINT)
            return process.communicate(timeout=timeout)
        finally:
            process.kill()


class Command:
    """`bankflip`, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Done:
        self._capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 2
        out, err = self._capsys.readouterr()
        return Done(status, out, err)


def child(*arguments: object, cwd: Path | None = None, **environment: str) -> Done:
    """`python -m app` in a process of its own, without a display unless one is given."""
    env = {name: value for name, value in os.environ.items() if name not in DISPLAYS}
    env.update({"PYTHONPATH": str(ROOT), **environment})
    done = subprocess.run(
        [sys.executable, "-m", "app", *map(str, arguments)],
        cwd=cwd or ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def valid(name: str, value: Any) -> Any:
    """The value, which must follow `resources/schemas/NAME.json`."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    validator(schema).validate(value)
    return value
