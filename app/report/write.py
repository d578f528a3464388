"""Writes a report: HTML, PDF, pictures and JSON of the same facts, each replaced at once.

The same subject gives the same bytes, apart from the date, which `SOURCE_DATE_EPOCH` fixes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from app.about import VERSION
from app.cli.common import UsageError, make_folder, write_atomically
from app.report import html
from app.report.alt import alt_text
from app.report.facts import Facts, Picture
from app.report.sources import Subject
from engine.printable import printable

if TYPE_CHECKING:
    from app.report.pictures import Shot

FORMATS: Final = ("html", "pdf", "png", "json")
THEMES: Final = ("light", "dark")


def date_of_report(environment: Mapping[str, str] = os.environ) -> datetime:
    """Now, or the moment that SOURCE_DATE_EPOCH names. Raises: UsageError."""
    stated = environment.get("SOURCE_DATE_EPOCH")
    if not stated:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(stated), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"SOURCE_DATE_EPOCH: expected seconds since 1970, given {stated[:40]!r}"
        ) from error


def write(
    subject: Subject, folder: Path, formats: Sequence[str] = FORMATS, theme: str = "light"
) -> list[Path]:
    """Write the report's files into a folder; returns their paths.

    Pictures are files of their own with `png`, and inside HTML and PDF. With `json` alone no Qt
    is needed.
    """
    made = date_of_report()
    words = made.strftime("%Y-%m-%d %H:%M UTC")
    shots: dict[str, dict[str, Shot]] = {}
    if set(formats) - {"json"}:
        shots[theme] = take_pictures(subject, theme)
        if theme == "dark" and "html" in formats:
            shots["light"] = take_pictures(subject, "light")
    facts = with_pictures(spelt_out(subject.facts), shots.get(theme, {}))
    pngs = {name: shot.png for name, shot in shots.get(theme, {}).items()}
    written = []

    def put(name: str, content: bytes) -> None:
        path = folder / name
        write_atomically(path, content)
        written.append(path)

    if "html" in formats:
        on_paper = {n: s.png for n, s in shots["light"].items()} if theme == "dark" else {}
        page = html.render(facts, pngs, on_paper, theme, VERSION, words, subject.group_size)
        put("report.html", page.encode())
    if "pdf" in formats:
        from app.report import pdf

        put(
            "report.pdf",
            pdf.render(facts, pngs, theme, VERSION, made, words, subject.group_size),
        )
    if "png" in formats:
        make_folder(folder / "pictures")
        for picture in facts.pictures:
            put(picture.file, pngs[picture.id])
    if "json" in formats:
        put("report.json", (json.dumps(to_json(facts, words), indent=1) + "\n").encode())
    return written


def spelt_out(value: Any) -> Any:
    """The same facts with every text as UTF-8 can write it; a file's name need not be."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(spelt_out(part) for part in value)
    if isinstance(value, dict):
        return {spelt_out(name): spelt_out(part) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: spelt_out(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **parts)
    return value


def take_pictures(subject: Subject, theme: str) -> dict[str, Shot]:
    """A picture of every panel, by id: some at the end of the session, the others at a refusal."""
    from app.report.pictures import grab, panels_of

    order = [spec.id for spec in panels_of(subject.newest)]
    found = {}
    at_end = [name for name in order if name in html.END_PANELS]
    rest = [name for name in order if name not in at_end]
    for scene, ids in ((subject.newest, at_end), (subject.focus, rest)):
        if ids:
            found.update({shot.spec.id: shot for shot in grab(scene, theme, ids)})
    return {name: found[name] for name in order}


def with_pictures(facts: Facts, shots: Mapping[str, Shot]) -> Facts:
    """The facts with what is known of each picture, its alt text from the same facts."""
    pictures = tuple(
        Picture(
            id=name,
            title=shot.spec.title,
            file=f"pictures/{name}.png",
            alt=alt_text(name, shot.spec.title, facts, shot.description or shot.spec.tooltip),
            width=shot.width,
            height=shot.height,
        )
        for name, shot in shots.items()
    )
    return replace(facts, pictures=pictures)


def to_json(facts: Facts, made: str) -> dict[str, Any]:
    """The same facts as plain JSON, see resources/schemas/report.json."""
    return {"bankflip": VERSION, "made": made, **asdict(facts)}
