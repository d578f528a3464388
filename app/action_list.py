# ruff: noqa: E501
"""The table of commands: one a line, in the order of the menus. `app.actions` makes them live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app import theme

NO_SESSION = "nothing is open yet: open the tiny model, a scenario or a file"


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One command."""

    id: str
    text: str
    tip: str
    menu: str
    """Menu path, such as `View/Colours`."""
    handler: str
    """Name of the window's method; it gets `argument` where there is one."""
    keys: tuple[str, ...] = ()
    icon: str = ""
    drawing: bool = False
    """The keys act only while a drawing has the focus."""
    checkable: bool = False
    group: str = ""
    """Checkable actions of one group exclude each other."""
    argument: object = None
    session: bool = True
    """Needs an open session."""
    split: bool = False
    """A separator comes before it."""
    standard: str = ""
    """Name of a `QKeySequence.StandardKey` whose keys act, too, where the platform has any."""


def _a(
    id: str, text: str, tip: str, menu: str, handler: str, *keys: str, **more: Any
) -> ActionSpec:
    return ActionSpec(id, text, tip, menu, handler, keys, **more)


MENUS = ("File", "Edit", "View", "Go", "Run", "Help")

FILE = (
    _a("file.open", "Open...", "Open a scenario, a capture, a saved session or a cache file", "File", "open_file_dialog", "Ctrl+O", icon="open", session=False),
    _a("file.open_folder", "Open model folder...", "Start a session with a model folder", "File", "open_folder_dialog", "Ctrl+Shift+O", icon="model", session=False),
    _a("file.demo", "Open the tiny model", "Start a session with the model that ships with Bankflip", "File", "open_tiny", "Ctrl+T", icon="model", session=False),
    _a("file.start", "Start page", "Show demos, recent files and what else can be opened", "File", "show_start", "Ctrl+Shift+N", icon="layout", session=False),
    _a("file.save", "Save session...", "Write the public state to a file", "File", "save_session", "Ctrl+S", icon="save", split=True),
    _a("file.record", "Record a capture...", "Record every transaction into a capture file from now on", "File", "toggle_capture", "Ctrl+Alt+R", icon="capture", checkable=True),
    _a("file.report", "Report...", "Make a report with pictures of what is open", "File", "make_report", "Ctrl+E", icon="report", split=True),
    _a("file.image", "Save view as image...", "Save a picture of the window", "File", "save_image", "Ctrl+Shift+E", icon="image", session=False),
    _a("file.close", "Close", "Close the session and go back to the start page", "File", "close_session", "Ctrl+W", icon="cross", split=True),
    _a("file.quit", "Quit", "Close the window", "File", "close", "Ctrl+Q", session=False),
)  # fmt: skip

EDIT = (
    _a("edit.undo", "Undo the last edit op", "Take back the newest change: of a bookmark or note, else the last edit op", "Edit", "undo_newest", "Ctrl+Z", icon="undo"),
    _a("edit.redo", "Redo", "Do the change of a bookmark or note again that was undone", "Edit", "redo_newest", "Ctrl+Shift+Z", icon="redo"),
    _a("edit.copy", "Copy as text", "Copy what is selected as text", "Edit", "copy_text", "Ctrl+C", icon="copy", session=False),
    _a("edit.copy_json", "Copy as JSON", "Copy the selection and its sequence as JSON", "Edit", "copy_json", "Ctrl+Shift+C"),
    _a("edit.deselect", "Select nothing", "Clear the selection", "Edit", "clear_selection", "Esc"),
    _a("edit.all", "Select the whole run", "Select every live position of the sequence", "Edit", "select_run", "Ctrl+A"),
    _a("edit.bookmark", "Bookmark", "Bookmark the selected position, cell or event, or remove its bookmark", "Edit", "toggle_bookmark", "Ctrl+B", icon="bookmark", split=True),
    _a("edit.note", "Note...", "Write a note on the selected position, cell or event", "Edit", "edit_note", "Ctrl+Shift+B"),
    _a("edit.ops", "Edit ops", "Go to the panel with append, evict, rewind, shift, fork and the others", "Edit", "go_to_panel", "Ctrl+U", icon="edit", argument="edits", split=True),
    _a("edit.preferences", "Preferences...", "Choose colours, text size, and what new sessions begin with", "Edit", "show_preferences", "Ctrl+,", session=False, split=True, standard="Preferences"),
)  # fmt: skip

VIEW = (
    _a("view.zoom_in", "Zoom in", "Show fewer positions, larger", "View", "zoom", "+", "=", "W", icon="zoom-in", drawing=True, argument=1.5),
    _a("view.zoom_out", "Zoom out", "Show more positions, smaller", "View", "zoom", "-", "S", icon="zoom-out", drawing=True, argument=1 / 1.5),
    _a("view.whole", "Whole run", "Show everything", "View", "fit_all", "0", icon="fit", drawing=True),
    _a("view.selection", "Fit selection", "Show what is selected as large as it goes", "View", "fit_selection", "F", drawing=True),
    _a("view.left", "Pan left", "Move the view towards older positions", "View", "pan", "A", drawing=True, argument=-0.5),
    _a("view.right", "Pan right", "Move the view towards newer positions", "View", "pan", "D", drawing=True, argument=0.5),
    _a("view.follow", "Follow the frontier", "Keep the newest positions in view", "View", "follow", "L", drawing=True),
    _a("view.system", "As the system", "Use the colours of the desktop", "View/Colours", "set_scheme", checkable=True, group="colours", argument="system", session=False),
    _a("view.light", "Light", "Use the light colours", "View/Colours", "set_scheme", checkable=True, group="colours", argument="light", session=False),
    _a("view.dark", "Dark", "Use the dark colours", "View/Colours", "set_scheme", checkable=True, group="colours", argument="dark", session=False),
    _a("view.contrast", "High contrast", "Use high contrast and patterns everywhere", "View/Colours", "set_scheme", checkable=True, group="colours", argument="contrast", session=False),
    *(
        _a(f"view.text{percent}", f"{percent} %", f"Show all text at {percent} percent", "View/Text size", "set_text_size", checkable=True, group="text", argument=percent, session=False)
        for percent in theme.TEXT_SIZES
    ),
    _a("view.patterns", "Patterns always", "Draw patterns also on every second group, and where there is little room", "View", "set_patterns", checkable=True, session=False),
    _a("view.motion", "Reduced motion", "Show the flip without a flash", "View", "set_reduced_motion", checkable=True, session=False),
    _a("view.reset", "Reset layout", "Bring every panel back to its place", "View", "reset_layout", "Ctrl+Shift+0", icon="layout", session=False, split=True),
    _a("view.full", "Full screen", "Use the whole screen", "View", "toggle_full_screen", "F11", checkable=True, session=False),
)  # fmt: skip

GO = (
    _a("go.to", "Go to...", "Go to a position, g203, cell 77 or event 1204", "Go", "focus_go_to", "Ctrl+G", icon="goto"),
    _a("go.next_hole", "Next hole", "Select the next missing position", "Go", "go_to_hole", "H", icon="hole", drawing=True, argument=1),
    _a("go.previous_hole", "Previous hole", "Select the missing position before", "Go", "go_to_hole", "Shift+H", drawing=True, argument=-1),
    _a("go.first", "First event", "Show the state after the first event", "Go", "go_to_first", "Ctrl+Home", icon="first", split=True),
    _a("go.back_event", "Event before", "Show the state after the event before", "Go", "step_event", "Ctrl+Left", ",", icon="back", argument=-1),
    _a("go.next_event", "Next event", "Show the state after the next event", "Go", "step_event", "Ctrl+Right", ".", icon="forward", argument=1),
    _a("go.live", "Return to newest", "Show the newest state again", "Go", "return_to_live", "Ctrl+End", icon="live"),
    _a("go.good", "Last good state", "Show the state after the last event that was not refused and did not fail", "Go", "go_to_last_good", "Ctrl+L", icon="check"),
    _a("go.next_problem", "Next problem", "Show the next event that was refused or failed", "Go", "step_problem", "F8", icon="warning", argument=1),
    _a("go.previous_problem", "Previous problem", "Show the event before that was refused or failed", "Go", "step_problem", "Shift+F8", argument=-1),
    *(
        _a(f"go.bookmark{n}", f"Bookmark {n}", f"Go to bookmark {n}", "Go/Bookmarks", "go_to_bookmark", f"Ctrl+{n}", argument=n)
        for n in range(1, 10)
    ),
    _a("go.back", "Back", "The selection before", "Go", "go_back", "Alt+Left", split=True),
    _a("go.forward", "Forward", "The selection after", "Go", "go_forward", "Alt+Right"),
    _a("go.next_pane", "Next pane", "Put the keyboard into the next pane", "Go", "next_pane", "F6", session=False, argument=1),
    _a("go.previous_pane", "Previous pane", "Put the keyboard into the pane before", "Go", "next_pane", "Shift+F6", session=False, argument=-1),
)  # fmt: skip

RUN = (
    _a("run.run", "Run", "Execute chunks until no token is queued", "Run", "run", "F5", icon="run"),
    _a("run.pause", "Pause", "Stop after the chunk in flight", "Run", "pause", "Shift+F5", icon="pause"),
    _a("run.toggle", "Run or pause", "Run when paused, pause when running", "Run", "run_or_pause", "Space", drawing=True),
    _a("run.stage", "Step a stage", "Execute one stage of the next chunk", "Run", "step_stage", "F10", icon="step-stage"),
    _a("run.chunk", "Step a chunk", "Execute the next chunk, or the rest of the open one", "Run", "step_chunk", "F9", icon="step-chunk"),
    _a("run.token", "Step a token", "Execute a chunk of one token", "Run", "step_token", "Shift+F9", icon="step-token"),
    _a("run.to", "Run to position", "Run until the position selected (or typed in Go to) is published", "Run", "run_to_position", "Ctrl+F5", icon="run-to"),
    _a("run.cancel", "Cancel", "Stop the work in flight; nothing of it is published", "Run", "cancel", "Ctrl+K", icon="cancel", session=False),
    _a("run.finish", "Finish the open transaction", "Execute the stages that are left, then publish", "Run", "finish", "Shift+F10", icon="check", split=True),
    _a("run.discard", "Discard the open transaction", "Throw the private image away; nothing was published", "Run", "discard", "Ctrl+F10", icon="cross"),
    _a("run.feed", "Feed tokens", "Go to the field for token ids; Enter queues them", "Run", "focus_feed", "Ctrl+D", icon="feed", split=True),
    _a("run.unfeed", "Forget queued tokens", "Empty the queue of the chosen sequence", "Run", "clear_feed", "Ctrl+Shift+D"),
    _a("run.fast", "Fast mode", "Evaluate once a chunk instead of once a stage", "Run", "set_fast", "Ctrl+M", checkable=True),
    _a("run.inject", "Inject failure at stage...", "Go to the fault injector", "Run", "go_to_panel", "Ctrl+J", icon="inject", argument="faults", split=True),
    _a("run.clear_faults", "Clear failures", "Disarm every fault", "Run", "clear_faults", "Ctrl+Shift+J"),
    _a("run.hole", "Try to append a hole", "Append the next two positions and skip one: it is refused", "Run", "append_hole", "Ctrl+H", icon="hole"),
    _a("run.fresh", "Same as fresh", "Execute the lineage anew and compare every byte", "Run/Checks", "run_check", argument="same-as-fresh", icon="check"),
    _a("run.sweep", "Boundary sweep", "Try every size around the boundaries", "Run/Checks", "run_check", argument="boundary-sweep"),
    _a("run.audit", "Audit of all digests", "Recompute every digest from bytes", "Run/Checks", "run_check", argument="audit"),
    _a("run.restart", "Restart the session", "Start again with nothing in it", "Run", "restart", "Ctrl+R", icon="reset", split=True),
)  # fmt: skip

HELP = (
    _a("help.tour", "Tour", "Do five things that this window is for, one after the other", "Help", "start_tour", session=False),
    _a("help.palette", "Command palette", "Find and run any command", "Help", "open_palette", "Ctrl+Shift+P", icon="command", session=False),
    _a("help.keys", "Keyboard shortcuts", "List every command with its keys", "Help", "show_shortcuts", "F1", "?", session=False),
    _a("help.glossary", "Words and kinds", "Say what the words of this window mean", "Help", "show_glossary", session=False),
    _a("help.log", "Open log folder", "Show where the log is kept", "Help", "open_log_folder", session=False, split=True),
    _a("help.diagnostics", "Copy diagnostics", "Copy versions, platform and the last lines of the log", "Help", "copy_diagnostics", session=False),
    _a("help.about", "About Bankflip", "Version and licence", "Help", "show_about", icon="info", session=False, split=True),
)  # fmt: skip

ACTIONS: tuple[ActionSpec, ...] = (*FILE, *EDIT, *VIEW, *GO, *RUN, *HELP)

ENGINE_BAR = (
    "run.run",
    "run.pause",
    "run.stage",
    "run.chunk",
    "run.token",
    "run.to",
    "run.cancel",
)
TIME_BAR = ("go.first", "go.back_event", "go.next_event", "go.live")
