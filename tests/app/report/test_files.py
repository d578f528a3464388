"""The files of a report: self-contained, whole, readable, the same twice."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from PIL import Image
from PySide6.QtWidgets import QApplication

from app.cli.common import UsageError
from app.client import Client
from app.report import html, pdf
from app.report.facts import Picture
from app.report.pictures import (
    ALL_PANELS,
    NOT_OF_SESSION,
    RUN_MAP,
    build,
    grab,
    panels_of,
    tell,
)
from app.report.sources import Subject, open_subject
from app.report.write import date_of_report, write
from app.views.hub import SelectionHub
from tests.helpers.commands import SCHEMAS

pytestmark = pytest.mark.usefixtures("qapp", "epoch")


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.images: list[dict[str, str | None]] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data") and value:
                self.links.append((tag, value))
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page_of(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


@pytest.fixture(scope="module")
def written(
    failed_stage: Subject, tmp_path_factory: pytest.TempPathFactory, qapp_args: list[str]
) -> Path:
    """A whole report, light."""
    QApplication.instance() or QApplication(qapp_args)
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        write(failed_stage, folder)
    return folder


def test_html_is_one_file_that_fetches_nothing(written: Path) -> None:
    page = page_of(written / "report.html")
    assert all(link.startswith("data:image/png;base64,") for _, link in page.links)
    assert "script" not in page.tags
    assert "url(" not in (written / "report.html").read_text()
    text = " ".join(page.text)
    assert "As expected: 10 ops gave what the scenario says" in text
    assert "layer.3.qsa.select" in text
    assert "2023-11-14 22:13 UTC" in text


def test_pictures_are_the_files_beside_it_and_have_alt_text(written: Path) -> None:
    page = page_of(written / "report.html")
    facts = json.loads((written / "report.json").read_text())
    own = [spec.id for spec in ALL_PANELS if spec.id not in NOT_OF_SESSION]
    assert [picture["id"] for picture in facts["pictures"]] == own
    by_alt = {picture["alt"]: picture for picture in facts["pictures"]}
    assert len(page.images) == len(by_alt) == len(own)
    for image in page.images:
        picture = by_alt[str(image["alt"])]
        content = base64.b64decode(str(image["src"]).partition(",")[2])
        assert content == (written / picture["file"]).read_bytes()


def test_pictures_show_something(written: Path) -> None:
    for path in (written / "pictures").iterdir():
        colours = Image.open(path).convert("RGB").getcolors(1 << 24)
        assert colours is not None
        assert len(colours) > 10, path.name


def test_the_run_map_shows_groups_in_both_colours(written: Path) -> None:
    pixels = np.asarray(Image.open(written / "pictures" / "run.png").convert("RGB"))
    for colour in ((0x0F, 0x3F, 0x9E), (0x47, 0x95, 0xE6)):
        assert (pixels.reshape(-1, 3) == colour).all(axis=1).mean() > 0.01


def test_json_holds_the_same_facts(written: Path) -> None:
    facts = json.loads((written / "report.json").read_text())
    schema = json.loads((SCHEMAS / "report.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(facts)
    text = " ".join(page_of(written / "report.html").text)
    for refusal in facts["refusals"]:
        assert refusal["sentence"] in text
        for line in refusal["digests"]:
            assert " ".join(re.findall("....", line["before"][:16])) in text
    assert facts["made"] == "2023-11-14 22:13 UTC"


def test_the_pdf_is_a4_and_says_when_it_was_made(written: Path) -> None:
    content = (written / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-1.")
    assert content.rstrip().endswith(b"%%EOF")
    boxes = set(re.findall(rb"/MediaBox \[([^\]]*)\]", content))
    assert len(boxes) == 1
    width, height = list(map(float, boxes.pop().split()))[2:]
    assert abs(width - 595) < 1
    assert abs(height - 842) < 1
    assert b"20231114221320" in content
    assert content.count(b"/Subtype /Image") >= len(ALL_PANELS) - len(NOT_OF_SESSION)


def test_twice_from_the_same_input_is_the_same_bytes(
    failed_stage: Subject, written: Path, tmp_path: Path
) -> None:
    write(failed_stage, tmp_path)
    files = [path.relative_to(written) for path in written.rglob("*") if path.is_file()]
    assert {str(path) for path in files} >= {"report.html", "report.pdf", "report.json"}
    for path in files:
        assert (written / path).read_bytes() == (tmp_path / path).read_bytes(), path


def test_a_dark_pdf_is_the_same_twice(hole_refused: Subject, tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        write(hole_refused, tmp_path, ("pdf",), "dark")
        contents.append((tmp_path / "report.pdf").read_bytes())
    assert contents[0] == contents[1]


def test_dark_pages_carry_light_pictures_for_paper(hole_refused: Subject, tmp_path: Path) -> None:
    write(hole_refused, tmp_path, ("html",), "dark")
    page = page_of(tmp_path / "report.html")
    on_paper = [image["src"] for image in page.images if image.get("class") == "on-paper"]
    on_screen = [image["src"] for image in page.images if image.get("class") == "on-screen"]
    assert len(on_paper) == len(on_screen) == len(page.images) / 2 > 10
    assert not set(on_paper) & set(on_screen)
    assert '<body class="dark">' in (tmp_path / "report.html").read_text()
    assert "@media print" in (tmp_path / "report.html").read_text()


def test_only_the_formats_asked_for(hole_refused: Subject, tmp_path: Path) -> None:
    assert [p.name for p in write(hole_refused, tmp_path, ("json",))] == ["report.json"]
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_what_others_wrote_is_escaped(hole_refused: Subject, tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>&\"'"
    facts = replace(hole_refused.facts, title=nasty, note=nasty, scenario=nasty)
    write(replace(hole_refused, facts=facts), tmp_path, ("html",))
    page = page_of(tmp_path / "report.html")
    assert "script" not in page.tags
    assert nasty in page.text


def test_a_foreign_file_shows_its_findings(samples: Path, tmp_path: Path) -> None:
    subject = open_subject(samples / "llama-cpp" / "hole.seq")
    assert [spec.id for spec in panels_of(subject.newest)] == ["run", "findings"]
    write(subject, tmp_path)
    text = " ".join(page_of(tmp_path / "report.html").text)
    assert "positions 11..14 are missing" in text
    pixels = np.asarray(Image.open(tmp_path / "pictures" / "run.png").convert("RGB"))
    # the hole is drawn in the colour of holes
    assert (pixels.reshape(-1, 3) == (0xE2, 0x19, 0x0F)).all(axis=1).any()
    # and what it makes forgotten in a colour of its own
    assert (pixels.reshape(-1, 3) == (0x8C, 0x32, 0x46)).all(axis=1).any()
    alt = str(page_of(tmp_path / "report.html").images[0]["alt"])
    assert alt.endswith("holes 11 to 14, forgotten 8 to 10, 15.")


def test_pictures_of_a_foreign_file_have_the_groups_that_were_asked_for(samples: Path) -> None:
    scene = open_subject(samples / "llama-cpp" / "hole.seq", group_size=8).newest
    client, hub = Client(), SelectionHub()
    panel = build(RUN_MAP, client, hub)
    tell(panel, client, hub, scene)
    assert panel.track.group_size == 8
    assert panel.track.n_whole == 2


def test_panels_at_the_refusal_show_it(failed_stage: Subject) -> None:
    (shot,) = grab(failed_stage.focus, "light", ["pipeline"])
    pixels = np.frombuffer(Image.open(__import__("io").BytesIO(shot.png)).tobytes(), np.uint8)
    red = (pixels.reshape(-1, 3) == (0xDE, 0x43, 0x1F)).all(axis=1)
    assert red.any()
    (before,) = grab(replace(failed_stage.newest, records=(), shown=None), "light", ["pipeline"])
    assert before.png != shot.png


def test_a_clock_in_a_pdf_is_replaced_byte_for_byte() -> None:
    made = pdf.datetime(2023, 11, 14, 22, 13, 20, tzinfo=pdf.UTC)
    dates = b"/CreationDate (D:20261129233020Z) /ModDate (D:20261129233020+05'30')"
    found = pdf.settle(dates, made)
    assert found == b"/CreationDate (D:20231114221320Z) /ModDate (D:20231114221320+00'00')"
    one, other = (
        pdf.settle(b"uuid:%s /ID [ <%s> ] text" % (uuid, hexes), made)
        for uuid, hexes in (
            (b"0f8fad5b-d9cb-469f-a165-70867728950e", b"aa" * 20),
            (b"7c9e6679-7425-40de-944b-e07fc1f90ae7", b"bb" * 20),
        )
    )
    assert one == other
    assert pdf.settle(b"uuid:0f8fad5b-d9cb-469f-a165-70867728950e other", made) not in (one, other)


def test_a_date_that_is_none() -> None:
    assert date_of_report({"SOURCE_DATE_EPOCH": "0"}).year == 1970
    for stated in ("soon", "1e3", str(10**30)):
        with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
            date_of_report({"SOURCE_DATE_EPOCH": stated})


def test_pictures_have_their_place() -> None:
    pictures = tuple(Picture(spec.id, "", "", "", 1, 1) for spec in ALL_PANELS)
    beside_run, beside_refusals, rest = html.place(pictures)
    assert [p.id for p in beside_run] == ["run", "cells", "spans"]
    assert "pipeline" in [p.id for p in beside_refusals]
    assert len(beside_run) + len(beside_refusals) + len(rest) == len(pictures)
