"""What kind of file something is, decided by its content. No Qt, nothing is kept open."""

from __future__ import annotations

import json
import struct
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.small_file import LARGEST_TEXT

SQLITE = b"SQLite format 3\x00"
LARGEST_HEADER = 100 * 2**20


class FileKind(StrEnum):
    """What can be opened."""

    MODEL = "model folder"
    SCENARIO = "scenario"
    CAPTURE = "capture"
    SESSION = "saved session"
    FOREIGN = "state of another engine"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A kind, or the sentence that says why there is none."""

    kind: FileKind | None
    reason: str = ""


def kind_of(path: Path) -> Verdict:
    """What `path` is; a file that is nothing of ours is left to the readers of other formats."""
    try:
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            return Verdict(None, f"{path}: there is no such file")
        size = path.stat().st_size
        if size == 0:
            return Verdict(None, f"{path}: the file is empty")
        with path.open("rb") as file:
            head = file.read(4096)
        if head.startswith(SQLITE):
            return Verdict(FileKind.CAPTURE)
        if _is_session(path, head, size):
            return Verdict(FileKind.SESSION)
        if _is_scenario(path, head, size):
            return Verdict(FileKind.SCENARIO)
    except OSError as error:
        return Verdict(None, f"{path}: {error.strerror or error}")
    return Verdict(FileKind.FOREIGN)


def _folder(path: Path) -> Verdict:
    if (path / "config.json").is_file():
        return Verdict(FileKind.MODEL)
    return Verdict(None, f"{path}: expected a model folder with config.json, found none in it")


def _is_session(path: Path, head: bytes, size: int) -> bool:
    """True for safetensors whose metadata name us as the writer."""
    if len(head) < 10 or head[8:9] != b"{":
        return False
    (length,) = struct.unpack("<Q", head[:8])
    if not 2 <= length <= min(LARGEST_HEADER, size - 8):
        return False
    with path.open("rb") as file:
        file.seek(8)
        try:
            metadata = json.loads(file.read(length)).get("__metadata__") or {}
        except (ValueError, AttributeError, RecursionError):
            return False
    return any(str(key).startswith("bankflip") for key in metadata) or str(
        metadata.get("format", "")
    ).startswith("bankflip")


def _is_scenario(path: Path, head: bytes, size: int) -> bool:
    """True for a JSON object or a TOML table with ops."""
    if size > LARGEST_TEXT or (b"ops" not in head and size <= len(head)) or b"\x00" in head:
        return False
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = tomllib.loads(text)
        except (ValueError, RecursionError):
            return path.suffix.lower() == ".toml" or (
                text.lstrip().startswith("{") and '"ops"' in text
            )
    return isinstance(value, dict) and "ops" in value
