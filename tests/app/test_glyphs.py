"""Each glyph draws something, and no two look the same."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QIcon, QImage, QPainter

from app import glyphs, theme


def drawn(name: str) -> bytes:
    image = QImage(24, 24, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    glyphs.paint(painter, QRectF(0, 0, 24, 24), name, QColor("#123456"))
    painter.end()
    return bytes(image.constBits())


def test_every_glyph_has_its_own_shape(qapp):
    pictures = {name: drawn(name) for name in glyphs.NAMES}
    assert len(set(pictures.values())) == len(glyphs.NAMES)
    assert drawn("no such glyph") not in pictures.values()


def test_a_glyph_on_a_selected_row_has_the_colour_of_its_text(qapp):
    theme.apply(qapp, "dark")
    icon = glyphs.icon("square", "failed")
    normal = icon.pixmap(QSize(12, 12), QIcon.Mode.Normal).toImage().pixelColor(6, 6)
    chosen = icon.pixmap(QSize(12, 12), QIcon.Mode.Selected).toImage().pixelColor(6, 6)
    assert normal == theme.colour("failed")
    assert chosen == qapp.palette().highlightedText().color()
