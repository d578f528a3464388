"""Edit ops on the selected range: fill a form, see the effect before, do it, undo it.

A refusal is shown in place with its reason and, where there is one, a button for the nearest
legal target.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFormLayout, QLineEdit, QPushButton, QWidget

from app.models import edits
from app.models.faults import proof, result_line
from app.views.panel import GlyphLabel, Panel, label, named, row_of, set_text
from app.views.tables import TableView
from engine.commands import Discard, Do, Finish, Try, Undo
from engine.errors import EngineError
from engine.events import SessionOpened, Trial, Trouble
from engine.opjson import from_json
from engine.snapshot import Record

NO_SESSION = "No session is open."
NO_PAST = "The past can't be edited: return to the newest state."


class EditPanel(Panel):
    """One form a kind of op; Enter tries, Ctrl+Enter does."""

    title = "Edit ops"

    def build(self) -> None:
        self.pending: edits.OpJson | None = None
        self.answer: Record | None = None
        self.tried = False
        self.fields: dict[str, QLineEdit] = {}
        self.touched: set[str] = set()
        self.kind = named(QComboBox(), self.tr("Op"), self.tr("What to do to the sequence"))
        for form in edits.FORMS:
            self.kind.addItem(form.title, form.op)
        self.explain = label("", self.tr("What the op does"), second=True, wrap=True)
        self.form = QWidget()
        named(self.form, self.tr("Fields of the op"))
        self.form_box = QFormLayout(self.form)
        self.form_box.setContentsMargins(0, 0, 0, 0)
        self.form_box.setVerticalSpacing(4)
        self.attempt = _button(self.tr("Try"), self.tr("Show the effect without doing it (Enter)"))
        self.do = _button(self.tr("Do"), self.tr("Do it now, as one transaction (Ctrl+Enter)"))
        self.undo = _button(self.tr("Undo"), self.tr("Restore the state before the last edit op"))
        self.from_selection = _button(
            self.tr("From selection"), self.tr("Fill the fields from the selected range")
        )
        self.mark = GlyphLabel(self)
        self.result = label("", self.tr("Result"), wrap=True)
        self.nearest = _button(self.tr("Use nearest"), self.tr("Fill in the nearest legal target"))
        self.finish = _button(self.tr("Finish"), self.tr("Execute the open transaction's rest"))
        self.discard = _button(self.tr("Discard"), self.tr("Throw the open transaction away"))
        self.effect = TableView(self.tr("Effect"))
        self._lay_out()
        self._make_form()

    def _lay_out(self) -> None:
        self.box.setSpacing(6)
        self.box.addLayout(row_of(self.kind, self.from_selection, None))
        self.box.addWidget(self.explain)
        self.box.addWidget(self.form)
        self.box.addLayout(row_of(self.attempt, self.do, self.undo, None))
        self.box.addLayout(row_of(self.mark, self.result))
        self.box.addLayout(row_of(self.nearest, self.finish, self.discard, None))
        self.box.addWidget(self.effect, 1)
        self.box.addStretch(0)
        self.kind.currentIndexChanged.connect(self._kind_changed)
        self.from_selection.clicked.connect(self.fill)
        self.attempt.clicked.connect(self.try_op)
        self.do.clicked.connect(self.do_op)
        self.undo.clicked.connect(self.undo_op)
        self.nearest.clicked.connect(self.use_nearest)
        self.finish.clicked.connect(lambda: self.send(Finish()))
        self.discard.clicked.connect(lambda: self.send(Discard()))

    # the form ---------------------------------------------------------------------------------

    def _kind_changed(self) -> None:
        self._make_form()
        self._forget()
        self.refresh()

    def _make_form(self) -> None:
        form = edits.form_of(self.kind.currentData())
        set_text(self.explain, form.sentence, "text2")
        while self.form_box.rowCount():
            self.form_box.removeRow(0)
        self.fields, self.touched = {}, set()
        for field in form.fields:
            edit = QLineEdit()
            named(edit, field.label, field.tip)
            edit.setPlaceholderText(field.tip)
            edit.textEdited.connect(lambda _, name=field.name: self._edited(name))
            edit.returnPressed.connect(self.try_op)
            words = label(field.label)
            words.setBuddy(edit)
            self.form_box.addRow(words, edit)
            self.fields[field.name] = edit
        self.fill()

    def _edited(self, name: str) -> None:
        self.touched.add(name)
        if name == "positions" and "tokens" in self.fields and "tokens" not in self.touched:
            self._suggest_tokens()
        self._forget()

    def _suggest_tokens(self) -> None:
        """As many token ids as positions, while the user gave none."""
        state = self.state()
        try:
            positions = edits.parse_positions(self.fields["positions"].text())
        except edits.FormError:
            return
        if state is not None and state.model and len(positions) <= 4096:
            tokens = edits.suggested_tokens(positions)
            self.fields["tokens"].setText(",".join(map(str, tokens)))

    def fill(self) -> None:
        """Fill the fields from the selection."""
        self.touched.clear()
        self._fill_untouched()
        self._forget()

    def _fill_untouched(self) -> None:
        values = edits.defaults(self.kind.currentData(), self.state(), self.hub.selection)
        for name, value in values.items():
            edit = self.fields[name]
            if name not in self.touched and edit.text() != value and not edit.hasFocus():
                edit.setText(value)

    def values(self) -> dict[str, str]:
        """What the fields say."""
        return {name: edit.text() for name, edit in self.fields.items()}

    def show_selection(self, selection, origin) -> None:
        """A selection elsewhere fills fields that the user did not touch."""
        self._fill_untouched()

    # asking -----------------------------------------------------------------------------------

    def _op(self):
        """The op of the form, or None after saying what is wrong."""
        self.touched.update(self.fields)
        try:
            self.pending = edits.build(self.kind.currentData(), self.values())
            return from_json(self.pending)
        except (edits.FormError, EngineError, ValueError) as error:
            self.pending = None
            self._say("warning", "warning", str(error))
            return None

    def try_op(self) -> None:
        """Ask what the op would do."""
        op = self._op()
        if op is not None:
            self._forget(keep=True)
            self.send(Try(op))

    def do_op(self) -> None:
        """Do the op."""
        op = self._op()
        if op is not None:
            self._forget(keep=True)
            self.tried = False
            self._waiting = True
            self.send(Do(op))

    _waiting = False

    def undo_op(self) -> None:
        """Restore the state before the last edit op."""
        self._forget()
        self._waiting = True
        self.send(Undo())

    def use_nearest(self) -> None:
        """Fill in the nearest legal target and try again."""
        found = edits.corrected(self.pending or {}, self.answer) if self.answer else None
        if found is None:
            return
        for name, value in found[0].items():
            self.fields[name].setText(value)
            self.touched.add(name)
        if "positions" in found[0] and "tokens" in self.fields:
            self._suggest_tokens()
        self.try_op()

    # answers ----------------------------------------------------------------------------------

    def show_record(self, record) -> None:
        if self._waiting:
            self._waiting = False
            self.answer, self.tried = record, False
            if record.outcome == "ok":
                self.touched.clear()
                self._fill_untouched()
        self.refresh()

    def show_event(self, body) -> None:
        if isinstance(body, Trial):
            self.answer, self.tried = body.record, True
        elif isinstance(body, Trouble) and (self._waiting or body.command in ("Undo", "Do", "Try")):
            self._waiting = False
            self.answer = None
            self._say("cross", "warning", body.sentence)
        elif isinstance(body, SessionOpened):
            self._waiting = False
            self.fill()
        else:
            return
        self.refresh()

    def _forget(self, keep: bool = False) -> None:
        """Drop the last answer, which is about another form."""
        self.answer = None
        if not keep:
            self.pending = None
        self._say("", "", "")
        self.refresh()

    def _say(self, glyph: str, role: str, words: str) -> None:
        self.mark.show_glyph(glyph, role)
        set_text(self.result, words, "text")

    def rebuild(self) -> None:
        state = self.state()
        live = state is not None and state.live
        for button in (self.attempt, self.do, self.undo):
            button.setEnabled(live)
        opened = state is not None and state.open is not None
        self.finish.setVisible(opened)
        self.discard.setVisible(opened)
        if not self.fields or not self.touched:
            self._fill_untouched()
        found = edits.corrected(self.pending or {}, self.answer) if self.answer else None
        self.nearest.setVisible(found is not None)
        if found is not None:
            self.nearest.setText(found[1])
            self.nearest.setAccessibleName(found[1])
        if self.answer is None:
            self.effect.setVisible(False)
            self._say_nothing(state)
            return
        self._show_answer(state)

    def _say_nothing(self, state) -> None:
        words = ""
        if state is None:
            words = NO_SESSION
        elif not state.live:
            words = NO_PAST
        if words or self.result.text() in (NO_SESSION, NO_PAST):
            self._say("", "", "")
            set_text(self.result, words, "text2")

    def _show_answer(self, state) -> None:
        record = self.answer
        assert record is not None
        good = record.outcome == "ok"
        if self.tried:
            words = "Would be done" if good else "Would be refused"
        else:
            done = "Undone" if record.op == "undo" else "Done"
            words = done if good else "Refused" if record.outcome == "rejected" else "Failed"
        self._say(
            "tick" if good else "cross",
            "done" if good else "failed",
            f"{words}: {result_line(record).removeprefix('undo: ')}",
        )
        if self.tried and good:
            self.effect.set_table(edits.effect_table(state, record))
        else:
            self.effect.set_table(proof(record).table)
        self.effect.setVisible(self.effect.table.rowCount() > 0)

    def keyPressEvent(self, event) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.do_op()
        else:
            super().keyPressEvent(event)


def _button(words: str, tip: str) -> QPushButton:
    button = QPushButton(words)
    named(button, words, tip)
    button.setAutoDefault(False)
    return button
