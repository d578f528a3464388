"""The run map: overview, detail and legend of the chosen sequence, with a place to go to."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.client import Client
from app.models import sequences as model
from app.models import track_text
from app.models.cells import cell_of
from app.models.marks import spans_of
from app.models.selection import Selection
from app.models.sequences import SEGMENT_KINDS, Kind, Track
from app.models.tracks import Tracks
from app.models.writers import Writers
from app.views.elided import ElidedLabel
from app.views.hub import SelectionHub
from app.views.legend import Legend
from app.views.run_detail import RunDetail
from app.views.run_overview import RunOverview
from engine.snapshot import Record, SequenceView, Snapshot


class Refused(QWidget):
    """The refused attempt that is drawn as a hole, in words."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Refused attempt"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        self.sign, self.words = QLabel(), ElidedLabel(self.tr("Why it was refused"))
        self.sign.setAccessibleName(self.tr("Refused"))
        row.addWidget(self.sign)
        row.addWidget(self.words, 1)
        self.hide()
        self._paint()

    def say(self, sentence: str) -> None:
        """Show a sentence; nothing where it is empty."""
        self.setVisible(bool(sentence))
        self.words.setText(self.tr("Refused: ") + sentence)

    def _paint(self) -> None:
        self.sign.setPixmap(theme.icon("hole", "hole").pixmap(16, 16))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.PaletteChange:
            self._paint()
        super().changeEvent(event)


class RunPanel(QWidget):
    """The centre of the window."""

    context_asked = Signal(object)

    def __init__(self, client: Client, hub: SelectionHub, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel.run")
        self.setAccessibleName(self.tr("Run map"))
        self.client, self.hub = client, hub
        self.tracks = Tracks()
        self.writers = Writers()
        self._drawn: tuple[Track, ...] = ()
        self._foreign = False
        self._build()
        self.detail.picked.connect(self._picked)
        self.detail.pointed.connect(self._pointed)
        self.detail.view_changed.connect(self._view_changed)
        self.detail.words = self.words_at
        self.overview.centred.connect(self._centre)
        self.overview.chosen.connect(self._choose)
        self.overview.pointed.connect(self._pointed)
        self.legend.filtered.connect(self._filter)
        self.sequence.activated.connect(self._sequence_activated)
        self.follow.clicked.connect(self._follow_clicked)
        client.shown_changed.connect(self._refresh)
        client.session_opened.connect(self._new_session)
        hub.marks.changed.connect(self._show_marks)

    def _build(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.setSpacing(4)
        head = QHBoxLayout()
        head.setSpacing(8)
        self.sequence = QComboBox()
        self.sequence.setAccessibleName(self.tr("Sequence"))
        self.sequence.setToolTip(self.tr("Which sequence the detail shows"))
        self.sequence.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.summary = self._label(self.tr("Summary of the run"))
        self.summary.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(self.sequence)
        head.addWidget(self.summary, 1)
        layout.addLayout(head)
        self.overview = RunOverview()
        layout.addWidget(self.overview)
        self.refused = Refused()
        layout.addWidget(self.refused)
        self.detail = RunDetail()
        layout.addWidget(self.detail, 1)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        self.legend = Legend()
        self.window_words = self._label(self.tr("Part in view"))
        self.window_words.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.follow = QToolButton()
        self.follow.setObjectName("run.follow")
        self.follow.setText(self.tr("Follow"))
        self.follow.setAccessibleName(self.tr("Follow the frontier"))
        self.follow.setToolTip(self.tr("Keep the newest positions in view while chunks run"))
        self.follow.setCheckable(True)
        self.follow.setChecked(True)
        self.follow.setMinimumHeight(24)
        foot.addWidget(self.legend)
        foot.addWidget(self.window_words, 1)
        foot.addWidget(self.follow)
        layout.addLayout(foot)

    def _label(self, name: str) -> ElidedLabel:
        label = ElidedLabel(name)
        label.setForegroundRole(label.palette().ColorRole.PlaceholderText)
        return label

    # state ------------------------------------------------------------------------------------

    def _new_session(self, _opened: object) -> None:
        self.tracks, self.writers, self._foreign = Tracks(), Writers(), False
        self.detail.following = True
        self._refresh()

    def forget(self) -> None:
        """Show nothing; the session was closed."""
        self.tracks, self.writers, self._foreign = Tracks(), Writers(), False
        self._set_tracks(())

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Draw the newest state, unless a past one is shown."""
        if self.client.shown is None:
            self._refresh()

    def show_record(self, record: Record) -> None:
        """Follow who wrote what, and keep refused holes in sight."""
        self.writers.add(record)
        self.tracks.add(record)
        if self.client.shown is None and record.outcome != "ok":
            self._refresh()

    def show_foreign(self, tracks: tuple[Track, ...]) -> None:
        """Draw state of another engine instead of a session."""
        self._foreign = True
        self._set_tracks(tracks)

    def _refresh(self, *_args: object) -> None:
        if self._foreign:
            return
        client = self.client
        if client.shown is not None:
            self._set_tracks(Tracks.of_record(client.shown))
        elif client.snapshot is not None:
            self._set_tracks(self.tracks.of_snapshot(client.snapshot))

    def _set_tracks(self, tracks: tuple[Track, ...]) -> None:
        self._drawn = tracks
        self._fill_selector()
        self._show_chosen()

    def _fill_selector(self) -> None:
        names = [(track.label, track.seq) for track in self._drawn]
        known = [
            (self.sequence.itemText(n), self.sequence.itemData(n))
            for n in range(self.sequence.count())
        ]
        if names != known:
            self.sequence.clear()
            for label, seq in names:
                self.sequence.addItem(label, seq)
        self.sequence.setVisible(len(names) > 1)
        at = self.sequence.findData(self.hub.selection.seq)
        if at >= 0:
            self.sequence.setCurrentIndex(at)

    @property
    def drawn(self) -> tuple[Track, ...]:
        """The runs of all sequences as they are shown."""
        return self._drawn

    @property
    def track(self) -> Track | None:
        """The track of the chosen sequence, the first where that is not there."""
        seq = self.hub.selection.seq
        chosen = (t for t in self._drawn if t.seq == seq)
        return next(chosen, self._drawn[0] if self._drawn else None)

    def _show_chosen(self) -> None:
        track = self.track
        self.detail.set_track(track)
        self._show_marks()
        self.overview.set_tracks(self._drawn, track.seq if track else 0)
        if track is None:
            self.summary.setText(self.tr("No sequence holds a position yet"))
            self.legend.set_counts({})
            self.refused.hide()
            return
        self.summary.setText(track_text.summary(track))
        self.legend.set_counts({kind: track.count(kind) for kind in SEGMENT_KINDS})
        self.refused.say(track.refused)
        self._show_selection_here(self.hub.selection, reveal=False)

    def _show_marks(self) -> None:
        seq = self.detail.track.seq if self.detail.track is not None else 0
        self.detail.set_marks(spans_of(self.hub.marks.marks, seq))

    def view_of(self, seq: int) -> SequenceView | None:
        """The sequence as it is shown now."""
        return next((view for view in self.client.sequences if view.seq == seq), None)

    # linked selection -------------------------------------------------------------------------

    def show_selection(self, selection: Selection, origin: object) -> None:
        """Show what was selected elsewhere; scrolls only where it is off screen."""
        at = self.sequence.findData(selection.seq)
        if at >= 0 and at != self.sequence.currentIndex():
            self.sequence.setCurrentIndex(at)
        track = self.track
        if track is not None and self.detail.track is not track:
            self._show_chosen()
        self._show_selection_here(selection, reveal=origin is not self)

    def _show_selection_here(self, selection: Selection, reveal: bool) -> None:
        chosen = None
        if selection.start is not None and selection.stop is not None:
            chosen = (selection.start, selection.stop)
        self.detail.set_selected(chosen, reveal)
        self.overview.set_selected(chosen)
        self.follow.setChecked(self.detail.following)

    def _picked(self, start: int, stop: int) -> None:
        track = self.track
        if track is None:
            return
        view = self.view_of(track.seq)
        group = model.group_at(track, start)
        if group is not None and (
            stop > model.group_range(track, group)[1] or model.is_broken(track, group)
        ):
            group = None
        cell = cell_of(view, start) if view is not None else None
        fields = {"seq": track.seq, "start": start, "stop": stop, "group": group, "cell": cell}
        self.hub.change(self, **fields)

    def _choose(self, seq: int) -> None:
        if seq != self.hub.selection.seq:
            self.hub.select(Selection(seq=seq))

    def _sequence_activated(self, at: int) -> None:
        self._choose(int(self.sequence.itemData(at)))

    def _filter(self, only: Kind | None) -> None:
        self.detail.set_filter(only)
        self.overview.set_filter(only)

    def _follow_clicked(self, on: bool) -> None:
        if on:
            self.detail.follow_frontier()
        else:
            self.detail.following = False

    def _centre(self, position: float) -> None:
        half = self.detail.axis.span / 2
        self.detail.show_range(position - half, position + half)

    def _view_changed(self, x0: float, x1: float) -> None:
        self.overview.set_box(x0, x1)
        self.follow.setChecked(self.detail.following)
        track = self.detail.track
        if track is None:
            self.window_words.setText("")
            return
        last = min(int(x1), track.hi) - 1
        per = self.detail.axis.per_position
        zoom = f"{per:.1f} px per position" if per >= 1 else f"{1 / per:,.0f} positions per px"
        self.window_words.setText(f"positions {int(x0):,} – {max(int(x0), last):,} · {zoom}")

    # words ------------------------------------------------------------------------------------

    def words_at(self, position: int) -> str:
        """Position, kind, group, cell, token and chunk in words."""
        track = self.detail.track
        if track is None:
            return ""
        parts = [self.detail.plain_words(position)]
        view = self.view_of(track.seq)
        cell = cell_of(view, position) if view is not None and not self._foreign else None
        if cell is not None:
            parts.append(f"cell {cell:,}")
            written = self.writers.words(track.seq, position)
            if written:
                parts.append(written)
        if track.ghost is not None and track.ghost[0] <= position < track.ghost[1]:
            parts.append("being written in the private bank")
        parts.append(self.detail.marks_at(position, position + 1))
        return ", ".join(filter(None, parts))

    def _pointed(self, position: int) -> None:
        self.hub.hovered.emit("" if position < 0 else self.words_at(position))

    def go_to(self, position: int) -> bool:
        """Select a position and bring it into view; False where the axis does not have it."""
        track = self.track
        if track is None or not track.lo <= position < track.hi:
            return False
        self.detail.select_position(position)
        return True

    def go_to_group(self, group: int) -> bool:
        """Select a complete group; False where there is no such."""
        track = self.track
        if track is None or not 0 <= group < track.n_groups:
            return False
        start, stop = model.group_range(track, group)
        self.hub.change(None, seq=track.seq, start=start, stop=stop, group=group)
        return True

    def go_to_hole(self, step: int) -> bool:
        """Select the next or previous hole; False where there is none."""
        track = self.track
        if track is None:
            return False
        found = model.next_hole(track, self.hub.selection.start, step)
        if found is None:
            return False
        self.hub.change(None, seq=track.seq, start=found[0], stop=found[1], group=None, cell=None)
        return True
