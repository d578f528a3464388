"""Fault injection: arm a failure at a stage, see what is armed, and the proof after it fired."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QSpinBox

from app import theme
from app.models.faults import KIND_WORDS, Arming, armed_table, proof, result_line
from app.models.table import Jump
from app.views.panel import GlyphLabel, Panel, WholeLabel, heading, named, row_of, set_text
from app.views.tables import TableView
from engine.commands import ArmFault, ClearFaults
from engine.events import FaultsChanged, SessionOpened
from engine.terms import FailKind, TxnStage

WHEN = (("once", "Once, next time"), ("always", "Always"), ("nth", "On time number"))


class StageBox(QComboBox):
    """A box to type in that leaves Enter to the form.

    While its text is selected, as it is when the focus came by Tab, the completer would take the
    first Enter for its own and only unselect.
    """

    def keyPressEvent(self, event) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            event.ignore()
        else:
            super().keyPressEvent(event)


class FaultPanel(Panel):
    """Stage, kind and when; the armed list; digests before and after for every owner."""

    title = "Fault injector"

    def build(self) -> None:
        self.stage, self.kind, self.when = StageBox(), QComboBox(), QComboBox()
        self.nth = QSpinBox()
        self.nth.setRange(1, 1_000_000)
        self.nth.setValue(3)
        self.arm = QPushButton(self.tr("Arm failure"))
        self.clear_one = QPushButton(self.tr("Clear selected"))
        self.clear_all = QPushButton(self.tr("Clear all"))
        self.explain = WholeLabel("", self.tr("What the failure is"), second=True)
        named(self.stage, self.tr("Stage"), self.tr("Stage after which the failure fires"))
        named(self.kind, self.tr("Kind"), self.tr("How it fails"))
        named(self.when, self.tr("When"), self.tr("How often it fires"))
        named(self.nth, self.tr("Time number"), self.tr("Which passing of the stage fails"))
        named(self.arm, self.tr("Arm failure"), self.tr("The stage fails when it is passed"))
        named(self.clear_one, self.tr("Clear selected"), self.tr("Disarm the selected stages"))
        named(self.clear_all, self.tr("Clear all"), self.tr("Disarm everything"))
        self.stage.setEditable(True)
        named(_there(self.stage.lineEdit()), self.tr("Stage"))
        self.stage.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        completer = _there(self.stage.completer())
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.stage.setMinimumContentsLength(18)
        self.stage.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        for kind in FailKind:
            self.kind.addItem(str(kind), str(kind))
        for choice, words in WHEN:
            self.when.addItem(words, choice)
        self.armed = TableView(self.tr("Armed faults"))
        self.result_mark = GlyphLabel(self)
        self.result = WholeLabel("", self.tr("Result"))
        self.verdict = WholeLabel("", self.tr("Proof"), second=True)
        self.proof = TableView(self.tr("Digests before and after"))
        self._lay_out()
        self.arm.clicked.connect(self.arm_fault)
        self.clear_all.clicked.connect(lambda: self.send(ClearFaults()))
        self.clear_one.clicked.connect(self.clear_selected)
        self.kind.currentIndexChanged.connect(self._explain)
        self.when.currentIndexChanged.connect(self._explain)
        self.armed.chosen.connect(lambda row: self.jump(self.armed.table.source.jump(row)))
        self.proof.chosen.connect(lambda row: self.jump(self.proof.table.source.jump(row)))
        self._explain()
        self._offer([str(stage) for stage in TxnStage])

    def _lay_out(self) -> None:
        self.box.setSpacing(4)
        self.box.addLayout(row_of(self.stage, self.kind))
        self.box.addLayout(row_of(self.when, self.nth, self.arm, None))
        self.box.addWidget(self.explain)
        self.armed_mark = heading("")
        self.box.addLayout(row_of(self.armed_mark, None, self.clear_one, self.clear_all))
        self.box.addWidget(self.armed)
        self.result_title = heading(self.tr("Last result"))
        self.box.addWidget(self.result_title)
        self.box.addLayout(row_of(self.result_mark, self.result))
        self.box.addWidget(self.verdict)
        self.box.addWidget(self.proof, 1)
        self.box.addStretch(0)

    # content ----------------------------------------------------------------------------------

    def show_event(self, body) -> None:
        if isinstance(body, FaultsChanged | SessionOpened):
            self.refresh()

    def show_record(self, record) -> None:
        self.refresh()

    def rebuild(self) -> None:
        session = self.client.session
        if session is not None:
            self._offer([name for name, _ in session.stages])
        faults = self.client.faults.faults
        self.armed.set_table(armed_table(faults))
        self.armed.setVisible(bool(faults))
        rows = min(len(faults), 4) + 1
        self.armed.setFixedHeight(rows * theme.row_height() + 6)
        self.clear_all.setVisible(bool(faults))
        self.clear_one.setVisible(bool(faults))
        set_text(self.armed_mark, f"Armed ({len(faults)})" if faults else "No fault is armed")
        self._show_result()

    def _offer(self, names: list[str]) -> None:
        shown = [self.stage.itemText(n) for n in range(self.stage.count())]
        names = list(dict.fromkeys(names))
        if names != shown:
            chosen = self.stage.currentText()
            self.stage.clear()
            self.stage.addItems(names)
            if names:
                self.stage.setCurrentText(chosen if chosen in names else names[0])

    def _show_result(self) -> None:
        record = self.client.shown or self._last_problem()
        for widget in (self.result_mark, self.verdict, self.proof):
            widget.setVisible(record is not None)
        if record is None:
            set_text(self.result, "Nothing failed or was refused yet.", "text2")
            return
        evidence = proof(record)
        glyph = "tick" if record.outcome == "ok" else "cross"
        role = "done" if record.outcome == "ok" else "failed"
        self.result_mark.show_glyph(glyph, role)
        set_text(self.result, f"event {record.number:,}: {result_line(record)}", "text")
        mark = "" if evidence.holds else "Broken: "
        set_text(self.verdict, mark + evidence.sentence, "text2")
        self.proof.set_table(evidence.table)

    def _last_problem(self):
        """The newest of the last 1,000 events that did not publish."""
        recent = self.client.records[-1000:]
        return next((record for record in reversed(recent) if record.outcome != "ok"), None)

    def _explain(self) -> None:
        kind = FailKind(self.kind.currentData())
        choice = self.when.currentData()
        self.nth.setEnabled(choice == "nth")
        again = {"always": "every time", "once": "the next time it is passed"}.get(
            choice, "at the given passing"
        )
        set_text(
            self.explain, f"{kind}: {KIND_WORDS[kind]}, {again}. Nothing is published.", "text2"
        )

    def show_selection(self, selection, origin) -> None:
        """A stage chosen elsewhere is offered here."""
        if selection.stage and origin is not self and self.stage.findText(selection.stage) >= 0:
            self.stage.setCurrentText(selection.stage)

    # hands ------------------------------------------------------------------------------------

    def arm_fault(self) -> None:
        """Arm what the form says."""
        stage = self.stage.currentText().strip()
        names = [self.stage.itemText(n) for n in range(self.stage.count())]
        if stage not in names:
            set_text(self.explain, f"expected a stage of the plan, given {stage!r}", "warning")
            return
        arming = Arming.of(self.when.currentData(), self.nth.value())
        self.send(ArmFault(stage, self.kind.currentData(), arming.times, arming.skip))
        self.hub.change(self, **Jump(stage=stage).changes())

    def keyPressEvent(self, event) -> None:
        """Enter in a field of the form arms; the fields themselves let it pass."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.arm_fault()
        else:
            super().keyPressEvent(event)

    def clear_selected(self) -> None:
        """Disarm the stages of the selected rows (the first when none is selected)."""
        source = self.armed.table.source
        chosen = {index.row() for index in self.armed.selectionModel().selectedRows()}
        rows = chosen or ({0} if source.n_rows else set())
        for stage in dict.fromkeys(source.cell(row, 0).text for row in sorted(rows)):
            self.send(ClearFaults(stage))


T = TypeVar("T")


def _there(part: T | None) -> T:
    """A part that an editable box always has."""
    assert part is not None
    return part
