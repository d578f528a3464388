"""Bookmarks, notes, and Undo: what they do in the window, and where they are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.cli.common import write_atomically
from app.mark_store import MarkStore
from app.models import marks as model
from app.models.marks import CellAt, EventAt, Mark, Place, Span
from app.models.marks_file import SUFFIX, encode
from app.models.marks_table import Shown, presence
from app.models.selection import Selection
from app.views.note_page import NotePage

NOTHING_SELECTED = "select a position, a cell or an event first"


class MarkCommands:
    """Mixed into the main window."""

    def start_marks(self) -> None:
        """Connect the book of marks; once."""
        book = self.hub.marks
        self._kind = "positions"
        self._before = self.hub.selection
        self._edits: list[int] = []
        """Numbers of the edit ops that can still be undone, the newest last."""
        self._asked: dict[int, Any] = {}
        self.mark_store = MarkStore(self.settings.marks_folder, book, self)
        self.mark_store.told.connect(self.notice_bar.say)
        self.mark_store.refused.connect(self.error_bar.add)
        book.newest_event = lambda: self.client.records[-1].number if self.client.records else -1
        book.changed.connect(self._marks_changed)
        book.stack.indexChanged.connect(self._name_undo)
        self.hub.changed.connect(self._note_kind)
        self.client.sent.connect(self._mark_sent)
        self.client.answered.connect(self._mark_answered)

    def connect_marks_panel(self) -> None:
        """Tell the panel where the runs are; once it is built."""
        panel = self.docks.panels["marks"]
        panel.tracks = lambda: self.run_panel.drawn
        panel.went.connect(lambda mark: self.go_to_mark(mark))
        panel.note_asked.connect(self.open_note)
        panel.refused.connect(self._say)

    # what is selected -------------------------------------------------------------------------

    def _note_kind(self, selection: Selection, origin: object) -> None:
        in_cells = origin is not None and origin is self.docks.panels.get("cells")
        self._kind = model.chosen_kind(self._before, selection, in_cells, self._kind)
        self._before = selection

    def marked_place(self) -> Place | None:
        """The place that Bookmark and Note act on."""
        selection = self.hub.selection
        check = None
        if selection.event is not None and not self._shows_foreign():
            at = self.index_of(selection.event)
            check = None if at is None else model.check_of(self.client.records[at])
        return model.place_of(selection, self._kind, check)

    def _shows_foreign(self) -> bool:
        return self.client.offline and self.client.foreign is not None

    # commands ---------------------------------------------------------------------------------

    def toggle_bookmark(self) -> None:
        """Bookmark what is selected, or take the bookmark away."""
        place = self.marked_place()
        if place is None:
            self._say(self.tr("Nothing is selected: ") + NOTHING_SELECTED)
            return
        try:
            change = model.toggled(self.hub.marks.marks, place)
        except model.TooManyMarks as error:
            self._say(str(error))
            return
        self.hub.marks.do(change)
        self._say(change.words[0].upper() + change.words[1:])

    def edit_note(self) -> None:
        """Write a note on what is selected."""
        place = self.marked_place()
        if place is None:
            self._say(self.tr("Nothing is selected: ") + NOTHING_SELECTED)
            return
        self.open_note(self.hub.marks.marks.get(place) or Mark(place))

    def open_note(self, mark: Mark) -> None:
        """Open the small window for a note."""
        for page in self.findChildren(NotePage):
            page.close()
        page = NotePage(mark, self)
        page.written.connect(self._note_written)
        page.open()

    def _note_written(self, place: Place, name: str, note: str) -> None:
        try:
            self.hub.marks.do(model.noted(self.hub.marks.marks, place, name, note))
        except ValueError as error:
            self._say(str(error))

    def go_to_bookmark(self, number: int) -> None:
        """Go to the bookmark with a number."""
        mark = model.numbered(self.hub.marks.marks, number)
        if mark is None:
            self._say(self.tr("There is no bookmark {0}").format(number))
        else:
            self.go_to_mark(mark)

    def go_to_mark(self, mark: Mark) -> None:
        """Select the place of a mark where it is there; else say why not."""
        place = mark.place
        now = presence(place, self.shown_places())
        went = self._go_to_place(place, now.there)
        if not now.there:
            words = f"{model.place_words(place)}: {now.words}"
            self._say(words[0].upper() + words[1:])
        elif went:
            self._say(mark.words[0].upper() + mark.words[1:])

    def _go_to_place(self, place: Place, there: bool) -> bool:
        match place:
            case Span():
                # evicted positions are still drawn
                tracks = {track.seq: track for track in self.run_panel.drawn}
                track = tracks.get(place.seq)
                if track is None or place.start >= track.hi or place.stop <= track.lo:
                    return False
                self.hub.select(Selection(seq=place.seq, start=place.start, stop=place.stop))
            case CellAt():
                return there and bool(self.docks.panels["cells"].go_to_cell(place.cell))
            case EventAt():
                at = self.index_of(place.number)
                if not there or at is None:
                    return False
                self.show_index(at)
                self.hub.change(None, event=place.number)
        return True

    def shown_places(self) -> Shown:
        """What the window shows, as far as places need it."""
        panel = self.docks.panels["marks"]
        state = None if self._shows_foreign() else panel.state()
        return Shown(self.run_panel.drawn, state, panel.record_of)

    # undo -------------------------------------------------------------------------------------

    @property
    def undo_is_mark(self) -> bool:
        """True where the newest change is one of a mark, not an edit op."""
        after = self.hub.marks.undo_event
        return after is not None and (not self._edits or after >= self._edits[-1])

    def undo_newest(self) -> None:
        """Take the newest change back: of a bookmark or note, else the last edit op."""
        if self.undo_is_mark:
            self.hub.marks.stack.undo()
        else:
            self.undo()

    def redo_newest(self) -> None:
        """Do again what Undo took back of bookmarks and notes."""
        self.hub.marks.stack.redo()

    def _name_undo(self, _index: int = 0) -> None:
        stack, actions = self.hub.marks.stack, self.actions_
        undo = stack.undoText() if self.undo_is_mark else self.tr("the last edit op")
        actions["edit.undo"].setText(self.tr("Undo {0}").format(undo))
        actions["edit.redo"].setText(self.tr("Redo {0}").format(stack.redoText()).strip())

    def _mark_sent(self, ticket: int, command: object) -> None:
        from engine.commands import Do, LoadSession, SaveSession

        if isinstance(command, (Do, LoadSession, SaveSession)):
            self._asked[ticket] = command

    def _mark_answered(self, ticket: int, body: object) -> None:
        """Follow edit ops, which Undo takes back too, and saved sessions, which have marks."""
        from engine.commands import Do, LoadSession, SaveSession
        from engine.events import Trouble
        from engine.snapshot import CheckResult, Record

        if isinstance(body, Record) and body.op == "undo" and body.outcome == "ok":
            del self._edits[-1:]
            self._name_undo()
        command = self._asked.get(ticket)
        if command is None or not isinstance(body, (Record, CheckResult, Trouble)):
            return
        del self._asked[ticket]
        if isinstance(body, Record) and body.outcome == "ok":
            if isinstance(command, Do):
                self._edits.append(body.number)
                self._name_undo()
            elif isinstance(command, LoadSession):
                self._edits.clear()
                self.mark_store.open_beside(Path(command.path).resolve())
        elif isinstance(body, CheckResult) and body.ok and isinstance(command, SaveSession):
            self.mark_store.also_beside(Path(command.path).resolve())

    # where they are kept ----------------------------------------------------------------------

    def marks_of_session(self, scenario: dict[str, Any] | None) -> None:
        """A session stands: find its bookmarks by what it was started from."""
        self.notice_bar.hide()
        self._edits.clear()
        self._asked.clear()
        if scenario is not None:
            key, name = json.dumps(scenario, sort_keys=True), str(scenario.get("case", ""))
        else:
            folder = getattr(self.last_open, "folder", None) or ""
            known = Path(folder).is_dir()
            key = str(Path(folder).resolve()) if known else str(folder)
            name = Path(folder).name
        self.mark_store.open_started(key, name)
        self._name_undo()

    def marks_of_files(self, paths: list[Path]) -> None:
        """Files are shown that are only read."""
        self.notice_bar.hide()
        self._edits.clear()
        self.mark_store.open_files([path.resolve() for path in paths])
        self._name_undo()

    def marks_for_report(self, folder: Path) -> list[str]:
        """Arguments with which a report lists the bookmarks; a file of them goes beside it."""
        self.mark_store.autosave()  # the report looks beside the file where it is given none
        marks = self.hub.marks.marks
        if not marks:
            return []
        path = folder / f"report{SUFFIX}"
        try:
            write_atomically(path, encode(marks))
        except OSError as error:
            self.error_bar.add(f"{path}: bookmarks can't be written: {error.strerror or error}")
            return []
        return ["--bookmarks", str(path)]

    def _marks_changed(self) -> None:
        for number in range(1, model.MOST_KEYS + 1):
            mark = model.numbered(self.hub.marks.marks, number)
            name = f": {mark.name}" if mark is not None and mark.name else ""
            words = self.tr("Bookmark {0}").format(number) + name.replace("&", "&&")
            self.actions_[f"go.bookmark{number}"].setText(words)
        self._soon()

    def mark_reason(self, id: str) -> str:
        """Why a command of bookmarks can't be used; empty where it can."""
        if id in ("edit.bookmark", "edit.note") and self.marked_place() is None:
            return NOTHING_SELECTED
        if id == "edit.redo" and not self.hub.marks.stack.canRedo():
            return "no change of a bookmark or note was undone"
        if id == "edit.undo" and self.client.offline and not self.undo_is_mark:
            return "a recording is shown, and no bookmark or note was changed"
        if id.startswith("go.bookmark"):
            number = int(id.removeprefix("go.bookmark"))
            if model.numbered(self.hub.marks.marks, number) is None:
                return f"there is no bookmark {number}"
        return ""
