"""One self-contained HTML file: pictures inside as data URIs, no script, nothing fetched."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app import resources
from app.report.facts import Facts, Neighbour, Picture
from app.report.words import number, pair_words, pairs_words, short_digest, time_words

KIND_WORDS: Final = {
    "capture": "a recorded session",
    "scenario": "a scenario, executed",
    "session": "a saved session",
    "cache": "cache state of another engine",
}
MAP_PANELS: Final = ("run", "cells", "spans")
"""Panels whose pictures stand beside the run."""
REFUSAL_PANELS: Final = ("pipeline", "banks", "faults", "problems")
END_PANELS: Final = (*MAP_PANELS, "limits", "edits", "checks", "tensor", "logits", "scenario")
"""Panels that are shown at the end of the session; the others look at the refusal."""


def neighbour_words(side: Neighbour) -> str:
    """A hole's neighbour in words."""
    text = f"position {number(side.position)}"
    if not side.live:
        return f"{text}, asked for"
    if side.group is None:
        text += ", raw tail"
    else:
        text += f", group {number(side.group)} member {side.place}"
    return text if side.cell is None else f"{text}, cell {number(side.cell)}"


def counted(name: str, count: int) -> str:
    """`1 op`, `2 ops`; words that are no plural stay."""
    return name.removesuffix("s") if count == 1 else name


def environment() -> Environment:
    """Templates with everything escaped and a mistyped name as an error."""
    env = Environment(
        loader=FileSystemLoader(resources.ROOT / "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        number=number,
        counted=counted,
        pair=pair_words,
        pairs=pairs_words,
        digest=short_digest,
        time=time_words,
        neighbour=neighbour_words,
    )
    return env


def data_uri(png: bytes) -> str:
    """A PNG as text inside the file."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def place(pictures: tuple[Picture, ...]) -> tuple[list[Picture], list[Picture], list[Picture]]:
    """Pictures beside the run, beside the refusals, and at the end."""
    beside_run, beside_refusals, rest = [], [], []
    for picture in pictures:
        if picture.id in MAP_PANELS:
            beside_run.append(picture)
        elif picture.id in REFUSAL_PANELS:
            beside_refusals.append(picture)
        else:
            rest.append(picture)
    return beside_run, beside_refusals, rest


def context(facts: Facts, theme: str, version: str, made: str, group_size: int) -> dict[str, Any]:
    """What both templates need."""
    beside_run, beside_refusals, rest = place(facts.pictures)
    if not facts.refusals:
        rest, beside_refusals = beside_refusals + rest, []
    return {
        "facts": facts,
        "theme": theme,
        "version": version,
        "made": made,
        "group_size": group_size,
        "kind_words": KIND_WORDS[facts.kind],
        "foreign": facts.kind == "cache",
        "times": any(line.duration_ns for line in facts.journal),
        "expectations": any(line.expected for line in facts.journal),
        "map_pictures": beside_run,
        "refusal_pictures": beside_refusals,
        "other_pictures": rest,
    }


def render(
    facts: Facts,
    pngs: Mapping[str, bytes],
    print_pngs: Mapping[str, bytes],
    theme: str,
    version: str,
    made: str,
    group_size: int,
) -> str:
    """The whole page.

    Args:
        pngs: picture id to PNG.
        print_pngs: light pictures for paper, empty where `pngs` are light themselves.
    """
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            **context(facts, theme, version, made, group_size),
            css=(resources.ROOT / "report" / "report.css").read_text(encoding="utf-8"),
            data={name: data_uri(png) for name, png in pngs.items()},
            print_pictures={name: data_uri(png) for name, png in print_pngs.items()},
        )
        + "\n"
    )
