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
        self.compact = False
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

    def _place(self) -> None:
        """Two lines a stage; one line each where that does not fit into the room there is."""
        parent = self.parentWidget()
        room = parent.height() if parent is not None else 0
        self.compact = False
        bottom = self._flow()
        if bottom > room:
            self.compact = True
            bottom = self._flow()
        self.setMinimumHeight(bottom)

    def _chip_size(self, chip) -> QSize:
        metrics = self.fontMetrics()
        bolt = 14 if chip.armed else 0
        if self.compact:
            return QSize(metrics.horizontalAdvance(self._line(chip)) + 30 + bolt, self._high())
        width = max(
            metrics.horizontalAdvance(chip.label) + 18 + bolt,
            metrics.horizontalAdvance(chip.second),
        )
        return QSize(width + 18, self._high())

    def _high(self) -> int:
        """Height of a stage."""
        high = self.fontMetrics().height()
        return high + 6 if self.compact else 2 * high + 5

    def _line(self, chip) -> str:
        """A stage in one line: done ones keep their time for the tooltip."""
        return f"{chip.label}: {chip.second}" if chip.square else chip.label

    def _flow(self) -> int:
        """Flow the groups into lines of the widget's width; returns the bottom.

        A group goes to the next line whole, or between its stages when it is longer than a line.
        """
        self.placed, self.titles = [], []
        x, y, row = 0, 0, 0
        room = max(self.width(), 160)
        metrics = self.fontMetrics()
        above = 0 if self.compact else metrics.height() + 1
        line = above + self._high() + LINE_GAP
        for group in self.pipeline.groups:
            sizes = [self._chip_size(chip) for chip in group.chips]
            total = sum(size.width() for size in sizes) + GAP * (len(sizes) - 1)
            title = metrics.horizontalAdvance(group.title)
            beside = title + GAP if self.compact else 0
            total = total + beside if self.compact else max(total, title)
            if x and x + min(total, room) > room:
                x, y, row = 0, y + line, row + 1
            first = x
            high = self._high() if self.compact else above
            self.titles.append((QRect(x, y, min(title + 2, room), high), group.title))
            x += beside
            for chip, size in zip(group.chips, sizes, strict=True):
                if x > first and x + size.width() > room:
                    x, y, row = 0, y + line, row + 1
                self.placed.append(Placed(chip, QRect(QPoint(x, y + above), size), row))
                x += size.width() + GAP
            x = max(x, first + title) + GROUP_GAP - GAP
        return max((item.rect.bottom() for item in self.placed), default=line) + 3

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
                middle = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
                painter.drawText(rect, middle, title)
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
        if not self.compact:
            painter.fillRect(rect.adjusted(1, 5, -rect.width() + 4, -5), colour)
        high, ascent = self.fontMetrics().height(), self.fontMetrics().ascent()
        top = rect.y() + (3 if self.compact else 2)
        glyphs.paint(painter, QRectF(rect.x() + 8, top + 2, 11, 11), chip.glyph, colour)
        painter.setPen(theme.colour("text"))
        first = self._line(chip) if self.compact else chip.label
        painter.drawText(rect.x() + 24, top + ascent, first)
        if not self.compact:
            painter.setPen(theme.colour("text" if chip.square else "text2"))
            painter.drawText(rect.x() + 9, top + high + ascent, chip.second)
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
