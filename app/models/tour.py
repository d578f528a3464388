"""The tour: five steps, when each counts as done, and what helps with the one that is next.

A step is done by what really happened (a selection, a record, a report), never by a click on the
tour itself. Steps may be done in any order. No Qt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from app.models.selection import Selection
from app.models.sequences import Kind, Track, group_at, kind_at
from engine.snapshot import Record


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do."""

    id: str
    title: str
    sentence: str


STEPS: Final = (
    Step(
        "group",
        "See a group",
        "Click a position inside a group, or type g0 into Go to (Ctrl+G). Positions of a group "
        "share one row of the index; the status bar names it.",
    ),
    Step(
        "hole",
        "Find the hole",
        "Select the missing position: H in the run map goes to it. A hole is an empty box with a "
        "cross, and is never published.",
    ),
    Step(
        "event",
        "Step one event",
        "Go back by one event with the comma key, or with the button left of its number. Every "
        "panel then shows the state after that event.",
    ),
    Step(
        "failure",
        "Inject a failure at a stage",
        "Arm a failure in the Fault injector (Ctrl+J), then execute a chunk (F9). The stage "
        "fails, and the digests prove that no owner changed.",
    ),
    Step(
        "report",
        "Make a report",
        "Choose Report in the File menu (Ctrl+E) and a folder for it. It holds pictures, and the "
        "same facts as text.",
    ),
)


@dataclass(frozen=True, slots=True)
class Progress:
    """What was done since the tour began."""

    done: frozenset[str] = frozenset()
    armed: frozenset[str] = frozenset()
    """Stages that a failure was asked for since then."""

    @property
    def current(self) -> Step | None:
        """The first step that is not done; None at the end."""
        return next((step for step in STEPS if step.id not in self.done), None)

    @property
    def is_finished(self) -> bool:
        """True once every step is done."""
        return self.current is None


def _with(progress: Progress, id: str) -> Progress:
    return replace(progress, done=progress.done | {id})


def after_selection(progress: Progress, selection: Selection, track: Track | None) -> Progress:
    """A position in a complete group, or a missing one, may have been selected."""
    start = selection.start
    if track is None or start is None or track.seq != selection.seq:
        return progress
    kind = kind_at(track, start)
    if kind is Kind.HOLE:
        return _with(progress, "hole")
    if kind in (Kind.GROUP_A, Kind.GROUP_B) and group_at(track, start) is not None:
        return _with(progress, "group")
    return progress


def after_shown(progress: Progress, shown: Record | None) -> Progress:
    """Another event may be shown than the newest."""
    return progress if shown is None else _with(progress, "event")


def after_command(progress: Progress, command: object) -> Progress:
    """A failure may have been armed.

    Commands are looked at and not the list of armed faults: of those only the newest is told,
    so one that fires at once would never be seen.
    """
    from engine.commands import ArmFault  # late: the first picture needs no commands

    if isinstance(command, ArmFault):
        return replace(progress, armed=progress.armed | {command.stage})
    return progress


def after_record(progress: Progress, record: Record) -> Progress:
    """A stage that a failure was armed at may have failed; a script's own failures don't count."""
    failed = record.outcome in ("failed", "cancelled")
    return _with(progress, "failure") if failed and record.stage in progress.armed else progress


def after_report(progress: Progress) -> Progress:
    """A report was written."""
    return _with(progress, "report")


@dataclass(frozen=True, slots=True)
class Scene:
    """What the window offers now, as far as the steps need it."""

    is_open: bool = False
    can_run: bool = False
    """A live session, not a recording or another engine's state."""
    has_group: bool = False
    has_hole: bool = False
    n_events: int = 0
    n_queued: int = 0
    is_armed: bool = False


@dataclass(frozen=True, slots=True)
class Help:
    """What the button beside a step shows, and what is in the way first."""

    target: str
    """`demo`, `group`, `hole`, `try_hole`, `event`, `feed`, `chunk`, `faults` or `report`."""
    hint: str = ""
    button: str = "Show me"


DEMO: Final = "Play the demo"


def help_with(step: Step, scene: Scene) -> Help:
    """How to go on with a step as things are."""
    if not scene.is_open:
        return Help("demo", "Nothing is open yet.", DEMO)
    if step.id == "group" and not scene.has_group:
        return _run_first(scene, "No group is complete yet.", "chunk")
    if step.id == "hole" and not scene.has_hole:
        return _run_first(
            scene, "There is none here: try to append one (Ctrl+H), it is refused.", "try_hole"
        )
    if step.id == "event" and scene.n_events < 2:
        return _run_first(scene, "There is no event before this one.", "chunk")
    if step.id == "failure":
        return _help_with_failure(scene)
    return Help(step.id)


def _run_first(scene: Scene, hint: str, target: str) -> Help:
    """Something must be run before; a recording can't be."""
    if not scene.can_run:
        return Help("demo", f"{hint} A recording can't be run.", DEMO)
    if target == "chunk":
        return _chunk(scene, hint)
    return Help(target, hint)


def _chunk(scene: Scene, hint: str) -> Help:
    if scene.n_queued:
        return Help("chunk", f"{hint} Step a chunk (F9).")
    return Help("feed", f"{hint} Feed tokens (Ctrl+D, Enter), then step a chunk (F9).")


def _help_with_failure(scene: Scene) -> Help:
    if not scene.can_run:
        return Help("demo", "What is shown can't be run.", DEMO)
    return _chunk(scene, "A failure is armed.") if scene.is_armed else Help("faults")
