"""The line at the bottom: backend, what is under the pointer, selection, queue and work."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QStatusBar,
    QWidget,
)

from app import theme
from app.models.selection import Selection
from app.views.elided import ElidedLabel
from engine.events import FeedChanged
from engine.progress import Progress
from engine.snapshot import Snapshot

BUSY_AFTER_MS = 300
BACKENDS = {"cpu": "MLX CPU", "metal": "Metal", "cuda": "MLX CUDA", "none": "no model"}


class StatusBar(QStatusBar):
    """Labels that a screen reader can find, and progress with Cancel."""

    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Status"))
        self.setSizeGripEnabled(False)
        self.setContentsMargins(4, 0, 8, 0)
        self.source = self._label(self.tr("Model and backend"))
        self.pointer = ElidedLabel(self.tr("Under the pointer"))
        self.selected = self._label(self.tr("Selection"))
        self.queue = self._label(self.tr("Queue"))
        self.work = QWidget()
        self.work.setAccessibleName(self.tr("Work in progress"))
        row = QHBoxLayout(self.work)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.doing = QLabel()
        self.doing.setAccessibleName(self.tr("What is being done"))
        self.progress = QProgressBar()
        self.progress.setAccessibleName(self.tr("Progress"))
        self.progress.setMaximumWidth(140)
        self.progress.setMaximumHeight(16)
        self.cancel = QPushButton(self.tr("Cancel"))
        self.cancel.setObjectName("status.cancel")
        self.cancel.setAccessibleName(self.tr("Cancel the work in progress"))
        self.cancel.setMinimumHeight(24)
        self.cancel.clicked.connect(self.cancelled)
        for widget in (self.doing, self.progress, self.cancel):
            row.addWidget(widget)
        self.addWidget(self.source)
        self.addWidget(self.pointer, 1)
        self.addPermanentWidget(self.work)
        self.addPermanentWidget(self.queue)
        self.addPermanentWidget(self.selected)
        self.work.hide()
        self._busy = QTimer(self)
        self._busy.setSingleShot(True)
        self._busy.timeout.connect(self.work.show)

    def _label(self, name: str) -> QLabel:
        label = QLabel()
        label.setAccessibleName(name)
        label.setMargin(2)
        return label

    def show_snapshot(self, snapshot: Snapshot | None, note: str = "") -> None:
        """Say which model runs on what."""
        if snapshot is None:
            self.source.setText(note)
            return
        backend = BACKENDS.get(snapshot.backend, snapshot.backend)
        parts = [snapshot.model.rsplit("/", 1)[-1] or self.tr("model-free"), backend]
        parts += [snapshot.mode] if snapshot.backend != "none" else []
        if snapshot.exact == "unproved":
            parts.append(self.tr("exactness unproved"))
        if note:
            parts.insert(0, note)
        self.source.setText(" · ".join(parts))
        if snapshot.backend == "cpu":
            tip = self.tr("No Metal here: the same graph runs in MLX on the CPU, more slowly.")
            self.source.setToolTip(tip)

    def show_pointer(self, words: str) -> None:
        """Say what is under the pointer."""
        self.pointer.setText(words)

    def show_selection(self, selection: Selection) -> None:
        """Say what is selected, with its size."""
        words = "" if selection.is_empty else selection.words()
        n = selection.n_positions
        self.selected.setText(words + (f" ({n:,})" if n > 1 else ""))

    def show_feed(self, feed: FeedChanged) -> None:
        """Say how many tokens wait and whether chunks run."""
        waiting = sum(n for _, n in feed.queued)
        parts = [self.tr("running")] if feed.running else []
        if waiting or feed.running:
            parts.append(self.tr("{0} queued").format(f"{waiting:,}"))
        self.queue.setText(" · ".join(parts))
        colour = theme.colour("text" if feed.running else "text2").name()
        self.queue.setStyleSheet(f"color: {colour}")

    def show_progress(self, progress: Progress) -> None:
        """Show work with its Cancel once it takes longer than a moment."""
        if progress.done >= progress.total > 0:
            self.end_work()
            return
        self.progress.setRange(0, progress.total)
        self.progress.setValue(progress.done)
        self.doing.setText(progress.stage or progress.unit)
        if not self.work.isVisible() and not self._busy.isActive():
            self._busy.start(BUSY_AFTER_MS)

    def begin_work(self, what: str) -> None:
        """Show work of unknown length once it takes longer than a moment."""
        self.doing.setText(what)
        self.progress.setRange(0, 0)
        if not self.work.isVisible() and not self._busy.isActive():
            self._busy.start(BUSY_AFTER_MS)

    def end_work(self) -> None:
        """Hide the progress."""
        self._busy.stop()
        self.work.hide()
