"""What the drawings share: rows of pixels, patterns, focus ring and the accessible interface."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import (
    QAccessible,
    QAccessibleInterface,
    QAccessibleValueChangeEvent,
    QBrush,
    QColor,
    QImage,
    QKeyEvent,
    QPainter,
    QPen,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget

from app import theme
from app.models.axis import Axis
from app.models.cells import LEFTOVER
from app.models.sequences import ROLE_OF, Kind, Track, group_range

N_CODES = LEFTOVER + 1
MOVING = (
    Qt.Key.Key_Left,
    Qt.Key.Key_Right,
    Qt.Key.Key_Up,
    Qt.Key.Key_Down,
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
)


def moves(event: QEvent) -> bool:
    """True for the keys that move inside a drawing."""
    if not isinstance(event, QKeyEvent) or event.modifiers() & Qt.KeyboardModifier.AltModifier:
        return False
    return event.key() in MOVING


class Drawing(QWidget):
    """A plain widget that paints itself, takes the keyboard and tells screen readers its value."""

    accessible_role = QAccessible.Role.Chart

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        install_accessible()

    def accessible_value(self) -> str:
        """What is selected or shown, in words; drawings override it."""
        return ""

    def tell_value(self) -> None:
        """Tell screen readers that the value moved."""
        if QAccessible.isActive():
            QAccessible.updateAccessibility(
                QAccessibleValueChangeEvent(self, self.accessible_value())
            )

    def as_text(self) -> str:
        """What Copy puts on the clipboard."""
        return self.accessible_value()

    # what the window's actions do with a drawing that has the focus
    def zoom(self, factor: float) -> None:
        """Zoom in (factor above 1) or out round the middle."""

    def fit_all(self) -> None:
        """Show everything."""

    def fit_selection(self) -> None:
        """Show what is selected as large as it goes."""

    def pan(self, screens: float) -> None:
        """Move along by a share of what is visible."""

    def event(self, event: QEvent) -> bool:
        """Keys that move inside a drawing stay here, also where the window has them, too."""
        if event.type() == QEvent.Type.ShortcutOverride and moves(event):
            event.accept()
            return True
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.update()
        super().changeEvent(event)

    def draw_focus(self, painter: QPainter) -> None:
        """A ring of two pixels while the keyboard is here."""
        if self.hasFocus():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour("accent"), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))


class DrawingInterface(QAccessibleWidget):
    """Name, role and value of a drawing for screen readers."""

    def __init__(self, drawing: Drawing) -> None:
        super().__init__(drawing, drawing.accessible_role, drawing.accessibleName())
        self._drawing = drawing

    def text(self, kind: QAccessible.Text) -> str:
        if kind == QAccessible.Text.Value:
            return self._drawing.accessible_value()
        if kind == QAccessible.Text.Description:
            return self._drawing.accessibleDescription() or self._drawing.toolTip()
        return self._drawing.accessibleName()


_interfaces: list[QAccessibleInterface] = []
_installed: list[bool] = []


def _interface_of(_class_name: str, obj: object) -> QAccessibleInterface | None:
    if not isinstance(obj, Drawing):
        return None
    interface = DrawingInterface(obj)
    _interfaces.append(interface)  # Qt keeps only the C++ side
    obj.destroyed.connect(lambda: _interfaces.remove(interface))
    return interface


def install_accessible() -> None:
    """Make Qt ask us for the interface of drawings; once a process."""
    if not _installed:
        QAccessible.installFactory(_interface_of)
        _installed.append(True)


# rows of pixels ---------------------------------------------------------------------------------


def colour_table(only: Kind | None = None) -> np.ndarray:
    """[N_CODES] uint32 colours of the codes; all but `only` faded where a filter is on."""
    table = np.zeros(N_CODES, np.uint32)
    for kind, role in ROLE_OF.items():
        table[kind] = theme.rgb(role)
    table[LEFTOVER] = theme.rgb("window")
    if only is not None:
        keep = {only} if only is not Kind.GROUP_A else {Kind.GROUP_A, Kind.GROUP_B, Kind.MIX}
        for kind in ROLE_OF:
            if kind not in keep and kind is not Kind.OUTSIDE:
                table[kind] = faded(int(table[kind]))
    return table


def faded(value: int) -> int:
    """A colour most of the way to the base: what a filter leaves in the background."""
    base = theme.rgb("base")
    result = 0xFF000000
    for shift in (0, 8, 16):
        one, other = (value >> shift) & 255, (base >> shift) & 255
        result |= (one * 18 + other * 82) // 100 << shift
    return result


def draw_row(painter: QPainter, target: QRectF, colours: np.ndarray) -> None:
    """Stretch one row of pixels over a rectangle.

    Args: colours: [width in device pixels] uint32 0xFFRRGGBB, contiguous.
    """
    width = len(colours)
    if width:
        image = QImage(colours.data, width, 1, 4 * width, QImage.Format.Format_RGB32)
        painter.drawImage(target, image)


def draw_grid(painter: QPainter, target: QRectF, colours: np.ndarray) -> None:
    """Stretch an array of colours [rows, columns] uint32 over a rectangle, without smoothing."""
    rows, columns = colours.shape
    if rows and columns:
        image = QImage(colours.data, columns, rows, 4 * columns, QImage.Format.Format_RGB32)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(target, image)


def widened(ticks: np.ndarray, pixels: int) -> np.ndarray:
    """Codes of the tick lane, each at least `pixels` columns wide; the louder one wins."""
    result = ticks.copy()
    for shift in range(1, pixels):
        np.maximum(result[shift:], ticks[:-shift], out=result[shift:])
    return result


# patterns ---------------------------------------------------------------------------------------


def hatch_colour(role: str) -> QColor:
    """A line colour that is seen on a fill of `role`."""
    value = theme.text_on(role)
    value.setAlpha(150)
    return value


PATTERNS_FROM, ALWAYS_FROM = 6.0, 2.0
"""Pixels that a segment must have for its pattern: usually, and where patterns are always on."""


def patterns_from() -> float:
    """Pixels from which a segment shows its pattern now."""
    return ALWAYS_FROM if theme.patterns_always() else PATTERNS_FROM


def draw_pattern(painter: QPainter, rect: QRect, kind: Kind) -> None:
    """The second cue of evicted (hatch), forgotten (lattice) and padding (dots).

    And, on demand, that of group B (lines).
    """
    if kind is Kind.EVICTED:
        painter.fillRect(rect, QBrush(hatch_colour("evicted"), Qt.BrushStyle.BDiagPattern))
    elif kind is Kind.FORGOTTEN:
        painter.fillRect(rect, QBrush(hatch_colour("forgotten"), Qt.BrushStyle.DiagCrossPattern))
    elif kind is Kind.PADDING:
        painter.fillRect(rect, QBrush(hatch_colour("padding"), Qt.BrushStyle.Dense6Pattern))
    elif kind is Kind.GROUP_B:
        painter.fillRect(rect, QBrush(hatch_colour("group_b"), Qt.BrushStyle.HorPattern))


def draw_group_patterns(
    painter: QPainter, lane: QRectF, track: Track, axis: Axis, first: int, stop: int, most: int
) -> None:
    """Lines on every second group of the positions [first, stop), where patterns are always on."""
    if not theme.patterns_always() or axis.per_position * track.group_size < ALWAYS_FROM:
        return
    first_group = max(0, (first - track.anchor) // track.group_size) | 1
    last_group = (stop - 1 - track.anchor) // track.group_size
    if last_group - first_group > 2 * most:
        return
    for group in range(first_group, last_group + 1, 2):
        start, end = (axis.to_pixel(p) for p in group_range(track, group))
        left, right = max(lane.left(), start), min(lane.right(), end)
        rect = QRectF(round(left), lane.top(), round(right) - round(left), lane.height())
        draw_pattern(painter, rect.toRect(), Kind.GROUP_B)


def draw_hole(painter: QPainter, rect: QRectF) -> None:
    """An empty box with a cross."""
    painter.fillRect(rect, theme.colour("base"))
    painter.setPen(QPen(theme.colour("hole"), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    inner = rect.adjusted(1, 1, -1, -1)
    painter.drawRect(inner)
    # square arms, however tall the lane is: a cross, not two slivers
    half = min(inner.width(), inner.height()) / 2 - 1
    middle = inner.center()
    if half >= 2:
        painter.drawLine(
            QPointF(middle.x() - half, middle.y() - half),
            QPointF(middle.x() + half, middle.y() + half),
        )
        painter.drawLine(
            QPointF(middle.x() - half, middle.y() + half),
            QPointF(middle.x() + half, middle.y() - half),
        )


def dashed(role: str, width: float = 2) -> QPen:
    """A dashed pen: private and unpublished things."""
    pen = QPen(theme.colour(role), width)
    pen.setDashPattern([3, 2])
    return pen
