"""The tensor view: a heat map of an owner's rows, public, private, or their difference."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDoubleSpinBox,
    QPushButton,
    QSpinBox,
)

from app.models import tensor
from app.models.table import Jump
from app.views.heat_map import HeatMap, ScaleBar
from app.views.panel import Panel, label, named, row_of, set_text
from app.views.tables import copy_text
from app.views.tick_box import TickBox
from engine.commands import ReadArray
from engine.events import SessionOpened
from engine.snapshot import ArraySlice

MAX_COPY = 200_000
FAR = 1e38


class TensorPanel(Panel):
    """Choose an array, a bank and a range of rows; hover tells position and value."""

    title = "Tensor view"

    def build(self) -> None:
        self.slices: dict[str, ArraySlice] = {}
        self.old = False
        """True once a newer state came than the one that was read."""
        self.shown_matrix: tensor.Matrix | None = None
        self.limits = tensor.Limits(0.0, 1.0)
        self.array = named(QComboBox(), self.tr("Array"), self.tr("Owner, layer and part"))
        self.bank = named(QComboBox(), self.tr("Bank"), self.tr("Which bank, or the difference"))
        for view in tensor.VIEWS:
            self.bank.addItem(view, view)
        self.first, self.rows = QSpinBox(), QSpinBox()
        self.first.setRange(0, 2**31 - 1)
        self.rows.setRange(1, tensor.MAX_ROWS)
        self.rows.setValue(256)
        named(self.first, self.tr("First position"), self.tr("First live position to read"))
        named(self.rows, self.tr("Rows"), self.tr("How many rows to read at most"))
        self.read = named(QPushButton(self.tr("Read")), self.tr("Read"), self.tr("Read it again"))
        self.fixed = named(TickBox(self.tr("Range")), self.tr("Fix the range of the colours"))
        self.low, self.high = QDoubleSpinBox(), QDoubleSpinBox()
        named(self.low, self.tr("Lowest value"), self.tr("Value of the first colour"))
        named(self.high, self.tr("Highest value"), self.tr("Value of the last colour"))
        self.scale = ScaleBar(self)
        self.map = HeatMap(self.tr("Heat map"))
        self.facts = label("", self.tr("Shape and range"), second=True, wrap=True)
        self.under = label("", self.tr("Value under the pointer"))
        self.empty = label("", self.tr("Why there is no picture"), second=True, wrap=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._lay_out()

    def _lay_out(self) -> None:
        self.array.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        words = [label(word) for word in (self.tr("from"), self.tr("rows"))]
        for spin in (self.low, self.high):
            spin.setDecimals(5)
            spin.setRange(-FAR, FAR)
            spin.setMaximumWidth(110)
            spin.setEnabled(False)
        self.box.setSpacing(4)
        self.box.addLayout(row_of(self.array, self.bank, self.read, None))
        self.box.addLayout(row_of(words[0], self.first, words[1], self.rows, None))
        self.box.addLayout(row_of(self.fixed, self.low, self.scale, self.high))
        self.box.addWidget(self.facts)
        self.box.addWidget(self.empty)
        self.box.addWidget(self.map, 1)
        self.box.addStretch(0)
        self.box.addWidget(self.under)
        self.array.activated.connect(self.ask)
        self.bank.activated.connect(self.ask)
        self.read.clicked.connect(self.ask)
        self.first.editingFinished.connect(self.ask)
        self.rows.editingFinished.connect(self.ask)
        self.fixed.toggled.connect(self._fix)
        self.low.editingFinished.connect(self._draw)
        self.high.editingFinished.connect(self._draw)
        self.map.hovered.connect(self._hover)
        self.map.picked.connect(self._pick)

    # asking -----------------------------------------------------------------------------------

    def show_event(self, body) -> None:
        if isinstance(body, SessionOpened):
            self.slices.clear()
            self.refresh()
        elif isinstance(body, ArraySlice) and self._is_mine(body):
            self.slices[body.bank] = body
            self.refresh()

    def show_snapshot(self, snapshot) -> None:
        """A new state makes what is shown old; it is read again when the panel is redrawn."""
        self.old = True
        self.refresh()

    def _is_mine(self, body) -> bool:
        return bool((body.owner, body.layer, body.part) == self.array.currentData())

    def ask(self) -> None:
        """Read what the form says from the engine."""
        chosen = self.array.currentData()
        if chosen is None:
            return
        self.old = False
        view = self.bank.currentData()
        banks = ("public", "private") if view == "difference" else (view,)
        self.slices = {bank: old for bank, old in self.slices.items() if self._is_mine(old)}
        state, seq = self.state(), self.hub.selection.seq
        run = state.sequence(seq) if state else None
        start = stop = None
        if self._by_position(chosen[0]) and run is not None:
            start = max(run.start, min(self.first.value(), max(run.start, run.stop - 1)))
            stop = min(run.stop, start + self.rows.value())
        for bank in banks:
            owner, layer, part = chosen
            self.send(ReadArray(owner, layer, part, seq, bank, start, stop))

    def _by_position(self, owner: str) -> bool:
        session = self.client.session
        return session is not None and dict(session.owners).get(owner) == "position"

    def rebuild(self) -> None:
        session = self.client.session
        arrays = session.arrays if session is not None else ()
        known = [self.array.itemData(n) for n in range(self.array.count())]
        if known != list(arrays):
            self.array.clear()
            for owner, layer, part in arrays:
                where = f" · layer {layer}" if layer >= 0 else ""
                self.array.addItem(f"{owner}{where} · {part}", (owner, layer, part))
            self.slices.clear()
            tensors = [n for n, (owner, _, _) in enumerate(arrays) if owner != "history"]
            self.array.setCurrentIndex(tensors[0] if tensors else self.array.count() - 1)
        if (self.old or not self.slices) and arrays and self.client.snapshot is not None:
            self.ask()
        self._draw()

    def show_selection(self, selection, origin) -> None:
        """Another sequence or owner chosen elsewhere is shown here."""
        if origin is self:
            self.refresh()
            return
        if selection.start is not None and not self.first.hasFocus():
            self._bring_in(selection.start)
        for n in range(self.array.count()):
            owner, layer, _ = self.array.itemData(n)
            if owner == selection.owner and selection.layer in (-1, layer):
                current = self.array.currentData()
                if current is None or current[0] != owner:
                    self.array.setCurrentIndex(n)
                    self.slices.clear()
                break
        self.refresh()

    def _bring_in(self, position: int) -> None:
        """Move the window of rows so that a position is in it."""
        if not self.first.value() <= position < self.first.value() + self.rows.value():
            self.first.setValue(max(0, position - self.rows.value() // 4))
            self.slices.clear()

    # drawing ----------------------------------------------------------------------------------

    def matrix(self) -> tensor.Matrix | str:
        """The numbers to draw, or the reason why there are none."""
        view = self.bank.currentData()
        if self.client.session is None:
            return "No session is open."
        if not self.array.count():
            return "This session has no tensors: open a model to see them."
        if self.client.shown is not None:
            return (
                "Tensors of the past are not kept; replay to see them. Return to the newest state."
            )
        if view == "difference":
            if not {"public", "private"} <= set(self.slices):
                return "Waiting for both banks."
            return tensor.difference(self.slices["public"], self.slices["private"])
        array = self.slices.get(view)
        return "Waiting for the engine." if array is None else tensor.matrix_of(array)

    def _draw(self) -> None:
        matrix = self.matrix()
        if isinstance(matrix, tensor.Matrix) and not matrix.values.size:
            matrix = f"{tensor.facts(matrix)}."
        missing = isinstance(matrix, str)
        self.shown_matrix = None if isinstance(matrix, str) else matrix
        self.empty.setVisible(missing)
        self.facts.setVisible(not missing)
        self.map.setVisible(not missing)
        if isinstance(matrix, str):
            set_text(self.empty, matrix, "text2")
            return
        set_text(self.facts, tensor.facts(matrix, self.bank.currentData()), "text2")
        self._choose_limits(matrix)
        self.scale.show_palette(tensor.palette(self.bank.currentData()))
        self._paint(matrix)

    def _choose_limits(self, matrix) -> None:
        if self.fixed.isChecked() and self.high.value() > self.low.value():
            self.limits = tensor.Limits(self.low.value(), self.high.value())
            return
        self.limits = tensor.automatic(matrix, self.bank.currentData())
        for spin, value in ((self.low, self.limits.low), (self.high, self.limits.high)):
            spin.setValue(value)

    def _fix(self, fixed: bool) -> None:
        self.low.setEnabled(fixed)
        self.high.setEnabled(fixed)
        self._draw()

    def _paint(self, matrix) -> None:
        view, by_position = self.bank.currentData(), self._shows_positions()
        rows = self.tr("position") if by_position else self.tr("row")
        self.map.show_matrix(matrix, self.limits, view, (rows, self.tr("column")))
        selection = self.hub.selection
        if not by_position or selection.start is None or selection.stop is None:
            self.map.mark(0, 0)
            return
        last = matrix.first + matrix.values.shape[0]
        self.map.mark(max(selection.start, matrix.first), min(selection.stop, last))

    def _shows_positions(self) -> bool:
        chosen = self.array.currentData()
        return chosen is not None and self._by_position(chosen[0])

    def _hover(self, row: int, column: int) -> None:
        if self.shown_matrix is not None:
            line = tensor.value_line(self.shown_matrix, row, column, self._shows_positions())
            set_text(self.under, line)

    def _pick(self, row: int, column: int) -> None:
        """A click selects the row's position everywhere."""
        if self.shown_matrix is not None and self._shows_positions():
            position = self.shown_matrix.first + row
            owner = self.array.currentData()[0]
            self.jump(Jump(positions=(position, position + 1), owner=owner))

    def copy(self) -> None:
        """Put the shown numbers on the clipboard, one row a line."""
        if self.shown_matrix is not None:
            values = self.shown_matrix.values
            if values.size > MAX_COPY:
                values = values[: max(1, MAX_COPY // max(1, values.shape[1]))]
            copy_text("\n".join("\t".join(map(repr, map(float, row))) for row in values) + "\n")

    def keyPressEvent(self, event) -> None:
        if event.key() == Qt.Key.Key_C and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.copy()
        else:
            super().keyPressEvent(event)
