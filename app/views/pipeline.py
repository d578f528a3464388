"""The stage pipeline: stages left to right, grouped by layer, with state, time and faults.

Drawn in one widget, since a large model has hundreds of stages. The context menu arms a failure
at a stage; arrow keys move between stages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QKeySequence, QPainter, QPen
from PySide6.QtWidgets import QMenu, QScrollArea, QToolTip, QWidget

from app import glyphs, theme
from app.models.faults import KIND_WORDS, Arming
from app.models.stages import Chip, pipeline, stage_table, with_armed
from app.models.table import Jump, to_text
from app.views.panel import GlyphLabel, Panel, label, row_of, set_text
from app.views.tables import copy_text
from engine.commands import ArmFault, ClearFaults
from engine.events import FaultsChanged, SessionOpened
from engine.terms import FailKind

GAP, GROUP_GAP, LINE_GAP = 4, 12, 4
GLYPHS = {"failed": "cross", "done": "tick", "running": "triangle", "warning": "warning"}
CHOICES = (("once", "Next time"), ("always", "Always"), ("nth", "On the third time"))
NTH = 3


@dataclass(frozen=True, slots=True)
class Placed:
    """A chip and where it stands."""

    chip: Chip
    rect: QRect
    row: int


class PipelineView(QWidget):
    """Paints the stages, and says which one is meant."""

    chosen = Signal(str)
    menu_wanted = Signal(str, QPoint)
    copy_wanted = Signal()

    def __init__(self, parent=None) -> None:
        super().__init__(parent)
        self.pipeline = pipeline(())
        self.placed: list[Placed] = []
        self.titles: list[tuple[QRect, str]] = []
        self.current = ""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName(self.tr("Stages"))

    def show_pipeline(self, value) -> None:
        """Lay out and draw other stages."""
        if value == self.pipeline and self.placed:
            return
        self.pipeline = value
        self._place()
        self._say()
        self.update()

    def choose(self, name: str) -> None:
        """Mark a stage without telling anybody."""
        if name != self.current:
            self.current = name
            self._say()
            self.update()

    def chip(self, name: str):
        """The placed chip with this name (the first, when the plan repeats it)."""
        return next((item for item in self.placed if item.chip.name == name), None)

    def _say(self) -> None:
        item = self.chip(self.current)
        armed = f", armed {', '.join(item.chip.armed)}" if item and item.chip.armed else ""
        words = f"stage {item.chip.name}, {item.chip.second}{armed}" if item else ""
        words = words or self.pipeline.banner
        if words != self.accessibleDescription():
            self.setAccessibleDescription(words)
            event = QAccessibleEvent(self, QAccessible.Event.DescriptionChanged)
            QAccessible.updateAccessibility(event)

    # layout -----------------------------------------------------------------------------------

    def _chip_size(self, chip) -> QSize:
        metrics = self.fontMetrics()
        bolt = 14 if chip.armed else 0
        width = max(
            metrics.horizontalAdvance(chip.label) + 18 + bolt,
            metrics.horizontalAdvance(chip.second),
        )
        return QSize(width + 18, 2 * metrics.height() + 5)

    def _place(self) -> None:
        """Flow the groups into lines of the widget's width; a long group breaks between chips."""
        self.placed, self.titles = [], []
        x, y, row = 0, 0, 0
        room = max(self.width(), 160)
        title = self.fontMetrics().height() + 1
        line = title + 2 * self.fontMetrics().height() + 5
        for group in self.pipeline.groups:
            sizes = [self._chip_size(chip) for chip in group.chips]
            total = sum(size.width() for size in sizes) + GAP * (len(sizes) - 1)
            total = max(total, self.fontMetrics().horizontalAdvance(group.title))
            if x and x + min(total, room) > room:
                x, y, row = 0, y + line + LINE_GAP, row + 1
            title_at, widest = (x, y), x
            for chip, size in zip(group.chips, sizes, strict=True):
                if x > title_at[0] and x + size.width() > room:
                    x, y, row = 0, y + line + LINE_GAP, row + 1
                self.placed.append(Placed(chip, QRect(QPoint(x, y + title), size), row))
                x += size.width() + GAP
                widest = max(widest, x)
            title_width = max(total, 40)
            self.titles.append((QRect(*title_at, min(title_width, room), title), group.title))
            x = max(x, title_at[0] + self.fontMetrics().horizontalAdvance(group.title))
            x += GROUP_GAP
        bottom = max((item.rect.bottom() for item in self.placed), default=line)
        self.setMinimumHeight(bottom + 4)

    def resizeEvent(self, event) -> None:
        super().resizeEvent(event)
        self._place()

    def changeEvent(self, event) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._place()

    # painting ---------------------------------------------------------------------------------

    def paintEvent(self, event) -> None:
        painter = QPainter(self)
        painter.setPen(theme.colour("text2"))
        for rect, title in self.titles:
            if rect.intersects(event.rect()):
                painter.drawText(rect, Qt.AlignmentFlag.AlignLeft, title)
        for item in self.placed:
            if item.rect.adjusted(-3, -3, 3, 3).intersects(event.rect()):
                self._paint_chip(painter, item)
        if not self.placed:
            words = self.tr("No stage to show.")
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignLeft, words)

    def _paint_chip(self, painter, item) -> None:
        chip, rect = item.chip, item.rect
        colour = theme.colour(chip.role)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        style = Qt.PenStyle.DashLine if chip.dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(colour, 2 if chip.square else 1.4, style))
        painter.setBrush(theme.colour("base"))
        radius = 0 if chip.square else 6
        painter.drawRoundedRect(QRectF(rect).adjusted(1, 1, -1, -1), radius, radius)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.fillRect(rect.adjusted(1, 5, -rect.width() + 4, -5), colour)
        high = self.fontMetrics().height()
        glyphs.paint(painter, QRectF(rect.x() + 8, rect.y() + 4, 11, 11), chip.glyph, colour)
        painter.setPen(theme.colour("text"))
        painter.drawText(rect.x() + 24, rect.y() + 2 + self.fontMetrics().ascent(), chip.label)
        painter.setPen(theme.colour("text" if chip.square else "text2"))
        painter.drawText(
            rect.x() + 9, rect.y() + 2 + high + self.fontMetrics().ascent(), chip.second
        )
        if chip.armed:
            spot = QRectF(rect.right() - 14, rect.y() + 3, 11, 13)
            glyphs.paint(painter, spot, "bolt", theme.colour("failed"))
        if chip.name == self.current:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(theme.colour("accent"), 2))
            painter.drawRect(rect.adjusted(-1, -1, 1, 1))

    # hands ------------------------------------------------------------------------------------

    def _at(self, point) -> Placed | None:
        return next((item for item in self.placed if item.rect.contains(point)), None)

    def mousePressEvent(self, event) -> None:
        item = self._at(event.position().toPoint())
        if item is not None:
            self._take(item)
        else:
            super().mousePressEvent(event)

    def _take(self, item) -> None:
        self.choose(item.chip.name)
        self.chosen.emit(item.chip.name)

    def contextMenuEvent(self, event) -> None:
        item = self.chip(self.current)
        point = event.globalPos()
        if event.reason() == event.Reason.Mouse:
            item = self._at(event.pos())
        elif item is not None:
            point = self.mapToGlobal(item.rect.bottomLeft())
        if item is not None:
            self._take(item)
            self.menu_wanted.emit(item.chip.name, point)

    def event(self, event) -> bool:
        if event.type() == QEvent.Type.ToolTip:
            item = self._at(event.pos())
            if item is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), item.chip.tip, self, item.rect)
            return True
        return super().event(event)

    def keyPressEvent(self, event) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(event.key())
        line = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(event.key())
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_wanted.emit()
        elif not self.placed:
            super().keyPressEvent(event)
        elif step is not None:
            at = self._index()
            self._take(self.placed[max(0, min(len(self.placed) - 1, at + step))])
        elif line is not None:
            self._take(self._above_or_below(line))
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._take(self.placed[0 if event.key() == Qt.Key.Key_Home else -1])
        else:
            super().keyPressEvent(event)

    def _index(self) -> int:
        names = [item.chip.name for item in self.placed]
        return names.index(self.current) if self.current in names else -1

    def _above_or_below(self, step: int) -> Placed:
        at = self.placed[max(self._index(), 0)]
        rows = [item for item in self.placed if item.row == at.row + step]
        if not rows:
            return at
        return min(rows, key=lambda item: abs(item.rect.center().x() - at.rect.center().x()))


class PipelinePanel(Panel):
    """The stages of the open or the last transaction, and the one sentence about them."""

    title = "Pipeline"

    def build(self) -> None:
        self.banner = label("", self.tr("State of the transaction"))
        self.banner_mark = GlyphLabel(self)
        self.armed = label("", self.tr("Armed faults"), second=True)
        self.view = PipelineView(self)
        self.view.copy_wanted.connect(self.copy)
        self.scroll_area = QScrollArea()
        self.scroll_area.setAccessibleName(self.tr("Stages, scrolled"))
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setFrameShape(QScrollArea.Shape.NoFrame)
        self.scroll_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.scroll_area.setWidget(self.view)
        self.box.addLayout(row_of(self.banner_mark, self.banner, None, self.armed))
        self.box.addWidget(self.scroll_area, 1)
        self.view.chosen.connect(lambda name: self.jump(Jump(stage=name)))
        self.view.menu_wanted.connect(self.open_menu)

    def words(self) -> str:
        return self.banner.text()

    def stages(self):
        """Stages of the shown event, else of the open or last transaction, else the plan's."""
        shown = self.client.shown
        known = self.client.stages
        stages = known.stages if known is not None else ()
        if shown is not None:
            stages = shown.stages
        return with_armed(stages, self.client.faults.faults)

    def show_stages(self, stages) -> None:
        self.refresh()

    def show_event(self, body) -> None:
        if isinstance(body, FaultsChanged | SessionOpened):
            self.refresh()

    def rebuild(self) -> None:
        shown, snapshot = self.client.shown, self.client.snapshot
        flips = shown.flips if shown else (snapshot.flips if snapshot else 0)
        txn = shown.txn if shown else (self.client.stages.txn if self.client.stages else None)
        value = pipeline(self.stages(), flips, txn)
        if shown is not None and not shown.stages:
            value = replace(value, banner=f"no stage ran: {shown.sentence}", banner_role="warning")
        self.view.choose(self.hub.selection.stage or "")
        self.view.show_pipeline(value)
        self._show_stage(value.failed or value.running)
        set_text(self.banner, value.banner, "text")
        self.banner_mark.show_glyph(GLYPHS.get(value.banner_role, ""), value.banner_role)
        n_armed = len(self.client.faults.faults)
        words = f"{n_armed} fault{'s' if n_armed != 1 else ''} armed" if n_armed else ""
        set_text(self.armed, words, "text2")

    def show_selection(self, selection, origin) -> None:
        self.view.choose(selection.stage or "")
        if origin is not self:
            self._show_stage(selection.stage or "")

    def _show_stage(self, name: str) -> None:
        """Scroll to a stage if it is out of sight."""
        item = self.view.chip(name)
        if item is not None:
            self.scroll_area.ensureVisible(item.rect.center().x(), item.rect.center().y(), 0, 40)

    def fault_menu(self, stage: str) -> QMenu:
        """Fail here: every kind, once, always or on the third time."""
        menu = QMenu(self)
        menu.setAccessibleName(f"Fail at {stage}")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setToolTipsVisible(True)
        menu.addSection(f"Fail at {stage}")
        for kind in FailKind:
            sub = menu.addMenu(str(kind))
            sub.setAccessibleName(f"Fail with {kind}")
            sub.menuAction().setToolTip(KIND_WORDS[kind])
            for choice, words in CHOICES:
                arming = Arming.of(choice, NTH)
                command = ArmFault(stage, str(kind), arming.times, arming.skip)
                sub.addAction(words, partial(self.send, command))
        menu.addSeparator()
        clear = menu.addAction(self.tr("Clear faults here"), lambda: self.send(ClearFaults(stage)))
        clear.setEnabled(any(name == stage for name, *_ in self.client.faults.faults))
        menu.addAction(self.tr("Clear all faults"), lambda: self.send(ClearFaults()))
        menu.addAction(self.tr("Copy all stages"), self.copy)
        return menu

    def open_menu(self, stage: str, point: QPoint) -> None:
        """Show the menu of a stage at a place on the screen."""
        self.fault_menu(stage).popup(point)

    def copy(self) -> None:
        """Put all stages on the clipboard as text."""
        copy_text(to_text(stage_table(self.stages())))
