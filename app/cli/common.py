"""What several subcommands share: their error of usage, numbers, atomic files. Imports no Qt."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from engine.atomic import replacing
from engine.errors import EngineError
from engine.printable import plain, printable

BACKENDS = ("auto", "metal", "cuda", "cpu")


class UsageError(EngineError):
    """The command line asks for something that is not there; exit status 2."""


def one_line(error: BaseException) -> str:
    """An error as one sentence; the system's with the file first and without its number."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{printable(os.fsdecode(error.filename))}: {error.strerror}"
    text = " ".join(text.split())
    return text or type(error).__name__


def sentence(text: str) -> str:
    """A text in one line, whatever stands in it: names of files may hold ends of lines."""
    return plain(" ".join(part.strip() for part in text.splitlines()))


def whole_number(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """A type for argparse: an integer within bounds, both in."""

    def parse(text: str) -> int:
        try:
            # int() accepts more than a person means, and takes long on very long text
            value = int(text) if len(text) <= 20 and text.isascii() else None
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"expected a whole number from {least} to {most}, given {text[:40]!r}"
            )
        return value

    return parse


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file open for writing that takes the target's place at the end, see `replacing`."""
    with replacing(path) as beside, open(beside, "wb") as file:
        yield file


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file's content at once, see `atomic_file`."""
    with atomic_file(path) as file:
        file.write(content)


def check_output(path: Path) -> None:
    """Refuse, before any work is done, a place that can't be written to."""
    if path.is_dir():
        raise UsageError(f"{path}: expected a file to write, given a folder")
    if path.exists() and not path.is_file():  # it would be replaced, a device of the machine, too
        raise UsageError(f"{path}: expected a file to write, given something else")
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{path}: the folder {folder} can't be written to")


def make_folder(path: Path) -> Path:
    """The folder for output, made where it is missing. Raises UsageError when it can't be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: can't be made: {error.strerror or error}") from error
    if not os.access(path, os.W_OK):
        raise UsageError(f"{path}: the folder can't be written to")
    return path
