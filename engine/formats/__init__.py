"""Saved cache state of other engines: one list of readers, chosen by a file's content.

`open_file` gives an `Opened`: a frozen report, and cell maps and row norms on demand. A reader
never trusts a length, never unpickles, and answers damage with a report, not an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Unreadable
from engine.formats.kv_events.recorded import is_recorded_stream, read_recorded_stream
from engine.formats.llama.log_report import is_llama_log, read_llama_log
from engine.formats.llama.state import is_llama_state, read_llama_state
from engine.formats.opened import CellMap, Opened, RowNorms
from engine.formats.options import Options
from engine.formats.own import is_capture_file, read_capture
from engine.formats.refused import is_other, is_pickle, refuse_other, refuse_pickle
from engine.formats.report import Code, Finding, Part, Report, Sequence
from engine.formats.source import Source
from engine.formats.tensors import is_safetensors, read_tensors

__all__ = [
    "READERS",
    "CellMap",
    "Code",
    "Finding",
    "Opened",
    "Options",
    "Part",
    "Reader",
    "Report",
    "RowNorms",
    "Sequence",
    "open_file",
    "read_source",
    "unreadable_report",
]


@dataclass(frozen=True, slots=True)
class Reader:
    """One format: its name for people, how to know it, how to read it."""

    name: str
    matches: Callable[[Source], bool]
    """Looks at a few bytes; the file's name does not count."""
    read: Callable[[Source, Options], Opened]


MAGICS = (b"qsgg", b"nsgg")
"""What a file may begin with that ends too soon for any reader."""

KNOWN = "llama.cpp state or log, safetensors, recorded events, a capture"
"""What `check` reads, for the sentence about a file that is nothing of it."""

READERS: tuple[Reader, ...] = (
    # the first that knows the content reads it
    Reader("llama.cpp state", is_llama_state, read_llama_state),
    Reader("safetensors", is_safetensors, read_tensors),
    Reader("recorded events", is_recorded_stream, read_recorded_stream),
    Reader("llama.cpp log", is_llama_log, read_llama_log),
    Reader("capture", is_capture_file, read_capture),
    Reader("pickle", is_pickle, refuse_pickle),
    Reader("another format", is_other, refuse_other),
)


def open_file(path: Path | str, options: Options | None = None) -> Opened:
    """Read the file at `path` with the first reader that knows its content.

    Raises: Unreadable when there is no such regular file. Damage is a finding of the report.
    """
    return read_source(Source.open(Path(path)), options or Options())


def read_source(source: Source, options: Options) -> Opened:
    """Read an open file."""
    for reader in READERS:
        if reader.matches(source):
            return reader.read(source, options)
    return Opened(unknown_report(source), source)


def unknown_report(source: Source) -> Report:
    """A file that no reader knows: an empty one, or a wrong magic."""
    if not source.size:
        words, code, detail = "the file is empty", Code.TRUNCATED, "truncated"
    elif any(magic.startswith(source.bytes(0, 8)) for magic in MAGICS):
        words = f"the file ends after {source.size} bytes, inside the magic of a known format"
        code, detail = Code.TRUNCATED, "truncated"
    else:
        head = source.bytes(0, 8).hex(" ")
        words = f"at byte 0 expected the start of a known format ({KNOWN}), found {head}"
        code, detail = Code.UNREADABLE, "magic"
    return Report(
        str(source.path), None, (Finding(code, words, offset=0),), reason=words, detail=detail
    )


def unreadable_report(path: str, error: Unreadable) -> Report:
    """The report of a file that can't be opened at all."""
    words = str(error).removeprefix(f"{path}: ")
    return Report(path, None, (Finding(Code.UNREADABLE, words),), reason=words, detail="file")
