"""Edit > Preferences: every choice in one place. A change holds at once; nothing to confirm.

Shows what the window says and tells what the user chose; changes nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QFrame,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.models import preferences as model
from app.models.preferences import BackendChoice, PreferenceError, Preferences
from app.views.panel import GlyphLabel, heading, label, name_all, named, paragraph, row_of, set_text
from app.views.tick_box import TickBox

WIDTH = 460


def backends_here() -> tuple[BackendChoice, ...]:
    """The backends to choose from; imports the array library."""
    from engine import diagnose

    found = [
        (finding.name.removeprefix("backend "), finding.state == diagnose.OK, finding.detail)
        for finding in diagnose.backends()
    ]
    return model.backend_choices(found)


class ChoiceBox(QComboBox):
    """A list that goes with the font; Qt keeps its smallest size when the text gets smaller."""

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())


class PreferencesDialog(QDialog):
    """Fields in three groups, each group with the moment from which a change holds."""

    changed = Signal(object)
    """The `Preferences` that are wanted."""

    def __init__(
        self,
        values: Callable[[], Preferences],
        parent: QWidget | None = None,
        backends: tuple[BackendChoice, ...] | None = None,
    ) -> None:
        super().__init__(parent)
        from engine.memory import default_budget

        self._values = values
        self._labels: list[QLabel] = []
        self._filling = False
        self.default_budget = default_budget()
        self.backends = backends_here() if backends is None else backends
        self.setObjectName("preferences")
        self.setWindowTitle(self.tr("Preferences"))
        self.setAccessibleName(self.windowTitle())
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self.page = QWidget()
        self.box = QVBoxLayout(self.page)
        self.box.setContentsMargins(16, 16, 16, 0)
        self.box.setSpacing(8)
        # large text on a small screen: the fields scroll, the buttons stay
        self.area = QScrollArea()
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setWidgetResizable(True)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setWidget(self.page)
        outer.addWidget(self.area, 1)
        self._build_look()
        self._build_chunks()
        self._build_sessions()
        self.foot = self._build_buttons()
        outer.addWidget(self.foot)
        name_all(self)
        self._fit()

    # building ---------------------------------------------------------------------------------

    def _section(self, title: str, when: str) -> QFormLayout:
        """A heading, when its fields take effect, and the form for them."""
        if self.box.count():
            self.box.addSpacing(8)
        self.box.addWidget(heading(title))
        self.box.addWidget(paragraph(when, second=True))
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.ExpandingFieldsGrow)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self.box.addLayout(form)
        return form

    def _row(self, form: QFormLayout, name: str, field: QWidget, tip: str) -> None:
        words = label(name)
        words.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        words.setBuddy(field)
        named(field, name, tip)
        field.setMinimumHeight(24)
        form.addRow(words, field)
        self._labels.append(words)

    def _choice(self, *entries: tuple[str, Any]) -> QComboBox:
        box = ChoiceBox()
        # long entries must not make the dialog wide
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(16)
        box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        for words, data in entries:
            box.addItem(words, data)
        box.currentIndexChanged.connect(self._tell)
        return box

    def _check(self, form: QFormLayout, words: str, tip: str) -> TickBox:
        check = named(TickBox(words), words, tip)
        check.setMinimumHeight(24)
        check.toggled.connect(self._tell)
        form.addRow(check)
        return check

    def _build_look(self) -> None:
        form = self._section(self.tr("Look"), self.tr("Changes at once."))
        self.scheme = self._choice(*((self.tr(words), name) for name, words in model.SCHEMES))
        self._row(form, self.tr("Colours"), self.scheme, self.tr("Colours of all windows"))
        self.text_size = self._choice(*((f"{size} %", size) for size in theme.TEXT_SIZES))
        tip = self.tr("All text, in percent of the system's size")
        self._row(form, self.tr("Text size"), self.text_size, tip)
        tip = self.tr("Also on every second group, and where there is little room")
        self.patterns = self._check(form, self.tr("Patterns always"), tip)
        tip = self.tr("Show the flip without a flash")
        self.reduced_motion = self._check(form, self.tr("Reduced motion"), tip)

    def _build_chunks(self) -> None:
        form = self._section(
            self.tr("Chunks"), self.tr("Holds from the next chunk on, also in an open session.")
        )
        self.chunk = QSpinBox()
        self.chunk.setRange(1, model.MOST_CHUNK)
        self.chunk.setKeyboardTracking(False)
        self.chunk.valueChanged.connect(self._tell)
        tip = self.tr("How many tokens one transaction takes, 1 to {0}").format(
            f"{model.MOST_CHUNK:,}"
        )
        self._row(form, self.tr("Tokens a chunk"), self.chunk, tip)

    def _build_sessions(self) -> None:
        form = self._section(
            self.tr("New sessions"),
            self.tr("Holds from the next session on; Restart (Ctrl+R) begins one."),
        )
        self.backend = self._choice(*((self.tr(c.words), c.name) for c in self.backends))
        items = self.backend.model()
        assert isinstance(items, QStandardItemModel)
        for row, choice in enumerate(self.backends):
            items.item(row).setEnabled(not choice.reason)
            items.item(row).setToolTip(choice.reason)
        self._row(form, self.tr("Backend"), self.backend, self.tr("Where the model runs"))
        self.mode = self._choice(*((self.tr(words), name) for name, words in model.MODES))
        self._row(form, self.tr("Mode"), self.mode, self.tr("How chunks are evaluated"))
        self.budget = QLineEdit()
        self.budget.setPlaceholderText(
            self.tr("half of the memory: {0}").format(model.rounded_words(self.default_budget))
        )
        self.budget.editingFinished.connect(self._budget_typed)
        self.budget.textEdited.connect(lambda _: self._say(""))
        tip = self.tr(
            "The most that both banks, checkpoints and a chunk may take together, such as {0}; "
            "a chunk that does not fit is refused. Models that mlx-lm runs have no such limit."
        ).format(model.SIZE_EXAMPLES)
        self._row(form, self.tr("Byte budget"), self.budget, tip)

    def _build_buttons(self) -> QWidget:
        foot = QWidget()
        box = QVBoxLayout(foot)
        box.setContentsMargins(16, 0, 16, 16)
        box.setSpacing(8)
        self.mark = GlyphLabel(self)
        self.mark.show_glyph("", "")
        self.problem = paragraph("", self.tr("What is wrong"))
        box.addLayout(row_of(self.mark, self.problem))
        self.box.addStretch(1)
        self.defaults = QPushButton(self.tr("Restore defaults"))
        named(self.defaults, self.defaults.text(), self.tr("Undo all choices of this page"))
        self.close_button = QPushButton(self.tr("Close"))
        named(self.close_button, self.close_button.text())
        for button in (self.defaults, self.close_button):
            button.setMinimumHeight(28)
            # Enter in a field must not press a button
            button.setAutoDefault(False)
        self.defaults.clicked.connect(self.restore_defaults)
        self.close_button.clicked.connect(self._close)
        box.addLayout(row_of(self.defaults, None, self.close_button))
        return foot

    def _fit(self) -> None:
        """Fields of all groups under each other, in a size that goes with the text."""
        # not the hints: a label's is never below the width that it was given for a larger font
        column = 2 + max(w.fontMetrics().horizontalAdvance(w.text()) for w in self._labels)
        for words in self._labels:
            words.setMinimumWidth(column)
        width = max(round(WIDTH * theme.row_height() / 22), self.page.minimumSizeHint().width())
        self.setMinimumWidth(width)
        height = sum(
            part.heightForWidth(width) if part.hasHeightForWidth() else part.sizeHint().height()
            for part in (self.page, self.foot)
        )
        screen = self.screen().availableGeometry()
        room_for_a_sentence = 3 * self.fontMetrics().height()
        self.resize(width, min(height + room_for_a_sentence, screen.height() - 64))

    # showing ----------------------------------------------------------------------------------

    def open_now(self) -> None:
        """Show it with what holds now, above the window."""
        self.show_values()
        self.show()
        self.raise_()
        self.activateWindow()
        self.scheme.setFocus()

    def show_values(self) -> None:
        """Fill the fields with what holds now."""
        now = self._values()
        self._filling = True
        self.scheme.setCurrentIndex(self.scheme.findData(now.scheme))
        self.text_size.setCurrentIndex(self.text_size.findData(theme.nearest_size(now.text_size)))
        self.patterns.setChecked(now.patterns)
        self.reduced_motion.setChecked(now.reduced_motion)
        self.chunk.setValue(now.chunk)
        self.backend.setCurrentIndex(self.backend.findData(now.backend))
        self.mode.setCurrentIndex(self.mode.findData(now.mode))
        self.budget.setText(model.budget_words(now.budget_bytes))
        self._filling = False
        self._say(self._missing_backend(now.backend))

    def _missing_backend(self, name: str) -> str:
        """The remembered backend may be one that this machine lacks."""
        choice = next(choice for choice in self.backends if choice.name == name)
        if not choice.reason:
            return ""
        return self.tr("Backend: {0} is not on this machine ({1}); choose another one.").format(
            choice.title, choice.reason
        )

    def _say(self, sentence: str) -> None:
        self.mark.show_glyph("warning" if sentence else "", "warning")
        set_text(self.problem, sentence, "warning")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            # menus and toolbars change the same things meanwhile
            if not self.budget.isModified():
                self.show_values()
        elif event.type() == QEvent.Type.FontChange:
            # the fields get the font after the dialog
            QTimer.singleShot(0, self, self._fit)

    # hands ------------------------------------------------------------------------------------

    def _tell(self, *_: object) -> None:
        """A field was changed: what is wanted now, with the budget as it is remembered."""
        if self._filling:
            return
        now = self._values()
        wanted = replace(
            now,
            scheme=self.scheme.currentData(),
            patterns=self.patterns.isChecked(),
            reduced_motion=self.reduced_motion.isChecked(),
            text_size=self._text_size(now.text_size),
            chunk=self.chunk.value(),
            backend=self.backend.currentData(),
            mode=self.mode.currentData(),
        )
        self.changed.emit(wanted)
        if self.problem.text() and not self.budget.isModified():
            self._say(self._missing_backend(wanted.backend))

    def _text_size(self, now: int) -> int:
        """The size chosen; one between the steps stays as it is until another step is chosen."""
        chosen = int(self.text_size.currentData())
        return now if theme.nearest_size(now) == chosen else chosen

    def _budget_typed(self) -> bool:
        """Take the budget over, or say in a sentence why not; True where it was taken."""
        if not self.budget.isModified():
            return True
        try:
            n_bytes = model.parse_budget(self.budget.text(), 2 * self.default_budget)
        except PreferenceError as error:
            self._say(str(error))
            return False
        self.budget.setText(model.budget_words(n_bytes))
        self.budget.setModified(False)
        self.changed.emit(replace(self._values(), budget_bytes=n_bytes))
        self._say(self._missing_backend(self._values().backend))
        return True

    def restore_defaults(self) -> None:
        """Every field as in a fresh start."""
        self.budget.setModified(False)
        self.changed.emit(Preferences())
        self.show_values()

    def _close(self) -> None:
        """Close, unless what stands in the budget would be lost without a word."""
        if self.budget.isModified() and not self._budget_typed():
            self.budget.setFocus()
            self.budget.selectAll()
            return
        self.accept()

    def reject(self) -> None:
        """Escape: what was typed and not taken is forgotten."""
        self.budget.setModified(False)
        super().reject()
