"""A report as PDF: a rich text document, laid out on A4 pages with a foot line.

The same facts give the same bytes: the clock and the random identifiers that the PDF writer puts
in are replaced by ones that follow from the content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QHashSeed,
    QIODevice,
    QMarginsF,
    QRectF,
    QSizeF,
    Qt,
    QUrl,
)
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFont,
    QImage,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)

from app.report.facts import Facts
from app.report.html import context, environment
from app.report.pictures import application

DPI: Final = 96
MARGIN_MM: Final = 14.0
FOOT_PX: Final = 24.0
ENOUGH_PX: Final = 80.0
"""At least so much of what follows a heading stands on its page."""
COLOURS: Final = {
    "light": {
        "base": "#FFFFFF",
        "text": "#1B1F24",
        "text2": "#57606A",
        "line": "#D4D8DD",
        "good": "#204B24",
        "goodbase": "#E5F3E8",
        "bad": "#B02A12",
        "badbase": "#FCEAE6",
        "fail": "#DE431F",
    },
    "dark": {
        "base": "#1B1F24",
        "text": "#E6E8EB",
        "text2": "#A4ADB7",
        "line": "#3A414A",
        "good": "#97E0AC",
        "goodbase": "#1E3326",
        "bad": "#FF8A7D",
        "badbase": "#3D2220",
        "fail": "#EE3B2E",
    },
}


def render(
    facts: Facts,
    pngs: Mapping[str, bytes],
    theme: str,
    version: str,
    made: datetime | None,
    made_words: str,
    group_size: int,
) -> bytes:
    """The PDF file. `made` is the date inside it; None: none is said, and the epoch is stored."""
    application()
    # the writer numbers fonts in the order of a hash table
    QHashSeed.setDeterministicGlobalSeed()
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(DPI)
    writer.setTitle(f"{facts.title} – Bankflip report")
    writer.setCreator(f"bankflip {version}")
    margins = QMarginsF(MARGIN_MM, MARGIN_MM, MARGIN_MM, MARGIN_MM)
    writer.setPageLayout(
        QPageLayout(
            QPageSize(QPageSize.PageSizeId.A4),
            QPageLayout.Orientation.Portrait,
            QMarginsF(0, 0, 0, 0),
        )
    )
    page = QSizeF(writer.width(), writer.height())
    edge = margins.left() / 25.4 * DPI
    body = QSizeF(page.width() - 2 * edge, page.height() - 2 * edge - FOOT_PX)
    document = make_document(facts, pngs, theme, version, made_words, group_size, body)
    paint(document, writer, page, edge, body, COLOURS[theme], facts.title)
    buffer.close()
    return settle(bytes(content.data()), made)


def make_document(
    facts: Facts,
    pngs: Mapping[str, bytes],
    theme: str,
    version: str,
    made_words: str,
    group_size: int,
    body: QSizeF,
) -> QTextDocument:
    """The laid out text, its pictures as resources."""
    env = environment()
    colours = COLOURS[theme]
    document = QTextDocument()
    document.setDefaultFont(QFont("DejaVu Sans", 9))
    document.setDocumentMargin(0)
    for name, png in pngs.items():
        image = QImage.fromData(png)
        document.addResource(
            QTextDocument.ResourceType.ImageResource.value, QUrl(f"picture:{name}"), image
        )
    html = env.get_template("report_pdf.html.j2").render(
        **context(facts, theme, version, made_words, group_size),
        css=env.get_template("report_pdf.css.j2").render(c=colours),
        colours=colours,
        width=int(body.width()),
    )
    document.setHtml(html)
    document.setPageSize(body)
    keep_headings(document, body.height())
    return document


def keep_headings(document: QTextDocument, page_px: float) -> None:
    """Begin a new page before a heading whose text would stand on the next page.

    The rich text engine has no rule for that, so each is looked at in turn; a break moves only
    what follows it.
    """
    layout = document.documentLayout()
    block = document.begin()
    while block.isValid():
        if block.blockFormat().headingLevel():
            after = following(block)
            top = layout.blockBoundingRect(block).top()
            if after.isValid():
                below = layout.blockBoundingRect(after)
                first_line = below.top() + min(below.height(), ENOUGH_PX)
                if int(top // page_px) != int(first_line // page_px) and top % page_px > 1:
                    break_before(block)
                    lay_out_anew(document)
        block = block.next()


def lay_out_anew(document: QTextDocument) -> None:
    """A change of a format lays out only a part at once and the rest later: ask for all."""
    size = document.pageSize()
    document.setPageSize(QSizeF(size.width(), size.height() + 1))
    document.setPageSize(size)


def following(block: QTextBlock) -> QTextBlock:
    """The block after a heading and the headings right below it."""
    after = block.next()
    while after.isValid() and (after.blockFormat().headingLevel() or not after.text().strip()):
        after = after.next()
    return after


def break_before(block: QTextBlock) -> None:
    """Put a page break before a block."""
    cursor = QTextCursor(block)
    form = block.blockFormat()
    form.setPageBreakPolicy(QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore)
    cursor.setBlockFormat(form)


def paint(
    document: QTextDocument,
    writer: QPdfWriter,
    page: QSizeF,
    edge: float,
    body: QSizeF,
    colours: Mapping[str, str],
    title: str,
) -> None:
    """Every page: background, its part of the text, the foot line."""
    painter = QPainter(writer)
    # text in pictures must stay sharp: no JPEG
    painter.setRenderHint(QPainter.RenderHint.LosslessImageRendering)
    count = document.pageCount()
    small = QFont("DejaVu Sans", 7)
    for number in range(count):
        if number:
            writer.newPage()
        painter.fillRect(QRectF(0, 0, page.width(), page.height()), QColor(colours["base"]))
        painter.save()
        painter.translate(edge, edge - number * body.height())
        seen = QAbstractTextDocumentLayout.PaintContext()
        seen.clip = QRectF(0, number * body.height(), body.width(), body.height())
        painter.setClipRect(seen.clip)
        seen.palette.setColor(seen.palette.ColorRole.Text, QColor(colours["text"]))
        document.documentLayout().draw(painter, seen)
        painter.restore()
        painter.setFont(small)
        painter.setPen(QColor(colours["text2"]))
        foot = QRectF(edge, page.height() - edge - FOOT_PX / 2, body.width(), FOOT_PX)
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, f"Bankflip report – {title}"[:100])
        painter.drawText(foot, Qt.AlignmentFlag.AlignRight, f"page {number + 1} of {count}")
    painter.end()


def settle(pdf: bytes, made: datetime | None) -> bytes:
    """The same PDF with the clock and random identifiers replaced, byte for byte as long."""
    when = (made or datetime.fromtimestamp(0, UTC)).astimezone(UTC)
    stamp = when.strftime("D:%Y%m%d%H%M%S").encode()
    pdf = re.sub(rb"D:\d{14}(?:[+-]\d\d'\d\d'|Z)?", lambda m: _fitted(stamp, m.group()), pdf)
    iso = when.strftime("%Y-%m-%dT%H:%M:%S").encode()
    pdf = re.sub(
        rb"(?<=[>\"])\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^<\"]*(?=[<\"])",
        lambda m: _fitted(iso, m.group()),
        pdf,
    )
    uuids = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
    ids = re.compile(rb"(?<=/ID \[)[^\]]*(?=\])")
    blank = ids.sub(lambda m: b"0" * len(m.group()), uuids.sub(b"0" * 36, pdf))
    mark = hashlib.sha256(blank).hexdigest()[:32]
    uuid = "-".join((mark[:8], mark[8:12], mark[12:16], mark[16:20], mark[20:])).encode()
    pdf = uuids.sub(uuid, pdf)
    hexes = re.compile(rb"[0-9a-fA-F]{16,}")
    long = (mark * 8).encode()
    return ids.sub(lambda m: hexes.sub(lambda h: long[: len(h.group())], m.group()), pdf)


def _fitted(stamp: bytes, old: bytes) -> bytes:
    """`stamp` in UTC, as long as the date that it replaces."""
    rest = old[len(stamp) :]
    return stamp + re.sub(rb"\d", b"0", rest).replace(b"-", b"+")
