"""A check box whose box is seen on every ground; the style's own nearly vanishes in the dark."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QStyle, QStyleOptionButton

from app import glyphs, theme


class TickBox(QCheckBox):
    """The style draws text and focus, the theme's colours the box."""

    def box(self) -> QRectF:
        """Where the box is."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        part = QStyle.SubElement.SE_CheckBoxIndicator
        return QRectF(self.style().subElementRect(part, option, self))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        ink = theme.colour("text" if self.isEnabled() else "pending")
        box = self.box()
        painter = QPainter(self)
        painter.setBrush(theme.colour("base"))
        painter.setPen(QPen(theme.colour("accent" if self.hasFocus() else "text2"), 1))
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self.isChecked():
            glyphs.paint(painter, box.adjusted(2, 2, -2, -2), "tick", ink)
        painter.end()
