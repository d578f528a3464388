"""The kinds with their colours, patterns and counts; a click shows only one of them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from app import theme
from app.models.sequences import MEANING_OF, ROLE_OF, Kind
from app.views import drawing

ENTRIES = (
    (Kind.GROUP_A, "groups"),
    (Kind.TAIL, "tail"),
    (Kind.HOLE, "hole"),
    (Kind.FORGOTTEN, "forgotten"),
    (Kind.PADDING, "padding"),
    (Kind.EVICTED, "evicted"),
)
SWATCH = QSize(16, 12)


def swatch(kind: Kind) -> QIcon:
    """Colour and pattern of a kind as an icon."""
    icon = QIcon()
    for scale in (1, 2):
        pixmap = QPixmap(SWATCH * scale)
        pixmap.setDevicePixelRatio(scale)
        pixmap.fill(theme.colour(ROLE_OF[kind]))
        painter = QPainter(pixmap)
        whole = QRect(0, 0, SWATCH.width(), SWATCH.height())
        if kind is Kind.GROUP_A:
            painter.fillRect(QRect(8, 0, 8, 12), theme.colour("group_b"))
            if theme.patterns_always():
                drawing.draw_pattern(painter, QRect(8, 0, 8, 12), Kind.GROUP_B)
        elif kind is Kind.HOLE:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            drawing.draw_hole(painter, QRectF(whole))
        elif kind is Kind.TAIL:
            painter.setPen(QPen(theme.colour("text"), 1))
            painter.drawRect(whole.adjusted(0, 0, -1, -1))
            painter.drawLine(8, 0, 8, 12)
        else:
            drawing.draw_pattern(painter, whole, kind)
        painter.end()
        icon.addPixmap(pixmap)
    return icon


class Legend(QWidget):
    """One checkable chip a kind; at most one is on."""

    filtered = Signal(object)
    """The `Kind` to show alone, None for all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Legend"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.chips: dict[Kind, QToolButton] = {}
        for kind, word in ENTRIES:
            chip = QToolButton()
            chip.setObjectName(f"legend.{word}")
            chip.setCheckable(True)
            chip.setAutoRaise(True)
            chip.setIconSize(SWATCH)
            chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            chip.setMinimumHeight(24)
            chip.setToolTip(f"{MEANING_OF[kind]} {self.tr('Click shows only these.')}")
            chip.clicked.connect(self._clicked)
            row.addWidget(chip)
            self.chips[kind] = chip
        self.clear = QToolButton()
        self.clear.setObjectName("legend.clear")
        self.clear.setAccessibleName(self.tr("Clear filter"))
        self.clear.setText(self.tr("Clear filter"))
        self.clear.setMinimumHeight(24)
        self.clear.clicked.connect(self._clear)
        row.addWidget(self.clear)
        self.note = QLabel()
        self.note.setAccessibleName(self.tr("Filter"))
        row.addWidget(self.note)
        row.addStretch(1)
        self.clear.hide()
        self.set_counts({})
        self.paint_icons()

    def set_counts(self, counts: dict[Kind, int]) -> None:
        """Say how many there are of each kind."""
        for kind, word in ENTRIES:
            text = f"{word} {counts.get(kind, 0):,}"
            self.chips[kind].setText(text)
            self.chips[kind].setAccessibleName(text)

    @property
    def only(self) -> Kind | None:
        """The kind shown alone."""
        return next((kind for kind, chip in self.chips.items() if chip.isChecked()), None)

    def _clicked(self) -> None:
        for chip in self.chips.values():
            if chip is not self.sender():
                chip.setChecked(False)
        self._tell()

    def _clear(self) -> None:
        for chip in self.chips.values():
            chip.setChecked(False)
        self._tell()

    def _tell(self) -> None:
        self.clear.setVisible(self.only is not None)
        self.filtered.emit(self.only)

    def paint_icons(self) -> None:
        """Draw the swatches in the colours and patterns of now."""
        for kind, chip in self.chips.items():
            chip.setIcon(swatch(kind))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self.paint_icons()
        super().changeEvent(event)
