"""The scenario player: load, step op by op, expected against actual; record, save, export."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton

from app.cli.common import write_atomically
from app.models.scenario import Json, Player, Recorder, file_text, pytest_text, slug
from app.views.panel import GlyphLabel, Panel, WholeLabel, named, row_of, set_text
from app.views.tables import TableView
from engine import cases
from engine.commands import Do, OpenModel
from engine.errors import EngineError
from engine.events import SessionOpened, Trouble
from engine.opjson import from_json

FILES = "Scenarios (*.json *.toml)"


class ScenarioPanel(Panel):
    """Plays a scenario against the engine, and records what the user does as one."""

    title = "Scenario player"

    def build(self) -> None:
        self.player, self.recorder = Player(), Recorder()
        self.waiting: int | None = None
        self.playing = False
        self.opening = False
        self.path = ""
        self.by_hand: int | None = None
        """Row that the user chose while ops were played; the newest op does not take it away."""
        self.problem = ""
        self.open = _button("Open...", "Open a scenario file")
        self.restart = _button("Restart", "Start the scenario's session anew")
        self.step = _button("Step", "Do the next op")
        self.play = _button("Play all", "Do all ops that are left; stops where one differs")
        self.record = _button("Record", "Record what is done in this session as a scenario")
        self.record.setCheckable(True)
        self.name = named(QLineEdit(), "Name of the recording", "Name of the recorded scenario")
        self.name.setPlaceholderText("name of the recording")
        self.name.setMaximumWidth(180)
        self.save = _button("Save...", "Save the scenario shown, or the recording, as a file")
        self.export = _button("Export pytest...", "Write a test that plays the scenario")
        self.heading = WholeLabel("", "Title")
        self.mark = GlyphLabel(self)
        self.verdict = WholeLabel("", "Verdict")
        self.view = TableView("Ops of the scenario")
        self.box.setSpacing(4)
        self.box.addLayout(
            row_of(
                self.open,
                self.restart,
                self.step,
                self.play,
                None,
                self.record,
                self.name,
                self.save,
                self.export,
            )
        )
        self.box.addWidget(self.heading)
        self.box.addLayout(row_of(self.mark, self.verdict))
        self.box.addWidget(self.view, 1)
        self.box.addStretch(0)
        self.open.clicked.connect(self.choose_file)
        self.restart.clicked.connect(self.start)
        self.step.clicked.connect(self.step_op)
        self.play.clicked.connect(self.play_all)
        self.record.toggled.connect(self.record_toggled)
        self.save.clicked.connect(self.choose_save)
        self.export.clicked.connect(self.choose_export)
        self.view.chosen.connect(self._chosen)
        self.client.scenario_opened.connect(self.take_scenario)
        if self.client.scenario is not None:
            self.take_scenario(self.client.scenario)

    # loading ----------------------------------------------------------------------------------

    def choose_file(self) -> None:
        """Ask for a scenario file."""
        path, _ = QFileDialog.getOpenFileName(self, "Open scenario", "", FILES)
        if path:
            self.load(path)

    def load(self, path: str) -> bool:
        """Read a scenario and start its session; a bad file says so and changes nothing."""
        try:
            scenario = cases.load(path)
        except (EngineError, OSError) as error:
            self.problem = str(error)
            self._redraw()
            return False
        self.problem, self.path = "", path
        self.record.setChecked(False)
        self.player = Player(json.loads(cases.dump(scenario)))
        self.start()
        return True

    def take_scenario(self, scenario: Json) -> None:
        """Show a scenario whose session the window asked for already."""
        self.problem = ""
        self.record.setChecked(False)
        self.player = Player(scenario)
        self.waiting, self.playing, self.by_hand = None, False, None
        self.refresh()

    def start(self) -> None:
        """Begin the scenario in a new session."""
        scenario = self.player.scenario
        if not scenario:
            return
        self.player.restart()
        self.waiting, self.playing, self.by_hand = None, False, None
        self.opening = True
        self.send(
            OpenModel(
                scenario.get("model"),
                group_size=scenario.get("group_size", 4),
                capacity=scenario["capacity"],
                window=scenario.get("window"),
                **self.client.chosen,
            )
        )
        self._redraw()

    # playing ----------------------------------------------------------------------------------

    def step_op(self) -> None:
        """Do the next op."""
        op = self.player.next_op
        if op is None or self.waiting is not None:
            return
        if not self.playing:
            self.by_hand = None
        self.waiting = len(self.player.results)
        chunk = self.player.scenario.get("chunk")
        self.send(Do(from_json(with_chunk(op, chunk), self.waiting)))
        self._redraw()

    def play_all(self) -> None:
        """Do all ops that are left, as their results come."""
        self.by_hand = None
        self.playing = True
        self.step_op()

    def show_record(self, record) -> None:
        self.recorder.take(record)
        if self.waiting is not None:
            self.player.played(record)
            self.waiting = None
            if self.player.first_difference() is not None or self.player.next_op is None:
                self.playing = False
            elif self.playing:
                self.step_op()
        self.refresh()

    def show_event(self, body) -> None:
        if isinstance(body, SessionOpened):
            self.opening = False
            if self.recorder.running:
                self._start_recording()
        elif isinstance(body, Trouble) and (self.waiting is not None or self.opening):
            self.problem = body.sentence
            self.waiting, self.playing, self.opening = None, False, False
        else:
            return
        self.refresh()

    # recording --------------------------------------------------------------------------------

    def record_toggled(self, on: bool) -> None:
        """Start to record, or show what was recorded as the scenario."""
        if on:
            self._start_recording()
        elif self.recorder.running:
            self.recorder.running = False
            if self.recorder.ops:
                self.take_recording()
        self._redraw()

    def _start_recording(self) -> None:
        snapshot = self.client.snapshot
        if snapshot is None:
            self.recorder.start(4, 4096, None, "")
        else:
            self.recorder.start(
                snapshot.group_size, snapshot.capacity, snapshot.window, snapshot.model
            )

    def take_recording(self) -> None:
        """Make the recording the scenario that is shown, as played."""
        self.by_hand = None
        name = slug(self.name.text() or "recorded")
        self.player = Player(self.recorder.scenario(name), list(self.recorder.results))
        self.player.final = dict(self.recorder.final)
        numbers = [record.number for record in self.client.records]
        self.player.events = numbers[-len(self.recorder.ops) :]

    # saving -----------------------------------------------------------------------------------

    def choose_save(self) -> None:
        """Ask where to save the scenario."""
        self._choose("Save scenario", f"{self._slug()}.json", FILES, file_text)

    def choose_export(self) -> None:
        """Ask where to write the test."""
        name = f"test_{self._slug().replace('-', '_')}.py"
        self._choose("Export pytest file", name, "Python (*.py)", pytest_text)

    def _slug(self) -> str:
        return slug(str(self.player.scenario.get("case") or "scenario"))

    def _choose(self, title: str, name: str, kinds: str, make) -> None:
        path, _ = QFileDialog.getSaveFileName(self, title, name, kinds)
        if path:
            self.write(path, make)

    def write(self, path: str, make) -> None:
        """Write the scenario in one of its forms; trouble is shown in place."""
        try:
            write_atomically(Path(path), make(self.player.scenario).encode())
            self.problem = ""
        except (EngineError, OSError) as error:
            self.problem = str(error)
        self._redraw()

    # content ----------------------------------------------------------------------------------

    def _redraw(self) -> None:
        self.refresh()
        self.flush()

    def show_selection(self, selection, origin) -> None:
        """Nothing here depends on the selection."""

    def rebuild(self) -> None:
        player, loaded = self.player, bool(self.player.scenario)
        ready = loaded and player.next_op is not None and self.waiting is None
        self.restart.setEnabled(loaded)
        self.step.setEnabled(ready and not self.opening)
        self.play.setEnabled(ready and not self.opening)
        self.save.setEnabled(loaded)
        self.export.setEnabled(loaded)
        note = player.scenario.get("note") or player.scenario.get("symptom") or ""
        told = f"{player.title}. {note}" if note else player.title
        set_text(self.heading, told if loaded else "", "text")
        self.heading.setVisible(loaded)
        self.record.setText(
            f"Recording ({len(self.recorder.ops)})" if self.recorder.running else "Record"
        )
        self.view.setVisible(loaded)
        self.view.set_table(player.table())
        if loaded:
            newest = max(0, len(player.results) - 1)
            self.view.show_row(newest if self.by_hand is None else self.by_hand)
        self._say()

    def _chosen(self, row: int) -> None:
        """The user looks at an op: it stays chosen until the next step or play."""
        self.by_hand = row
        self.jump(self.view.table.source.jump(row))

    def _say(self) -> None:
        words, role = self.player.verdict()
        if self.problem:
            words, role = self.problem, "warning"
        elif not self.player.scenario:
            words = "Open a scenario, or record what you do and stop to see it here."
        glyph = {"done": "tick", "failed": "cross", "running": "triangle", "warning": "warning"}
        self.mark.show_glyph(glyph.get(role, ""), role)
        set_text(self.verdict, words, "text2" if role == "text2" else "text")


def with_chunk(op: Json, chunk: int | None) -> Json:
    """An append takes the scenario's chunk where it names none itself."""
    if chunk and op.get("op") == "append" and "chunk" not in op:
        return {**op, "chunk": chunk}
    return op


def _button(words: str, tip: str) -> QPushButton:
    return named(QPushButton(words), words, tip)
