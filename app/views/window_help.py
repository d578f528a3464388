"""What the View and Help menus do: zoom, palette, shortcut page, diagnostics."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTextBrowser, QVBoxLayout

from app import log, resources
from app.__main__ import VERSION
from app.actions import shortcut_rows
from app.models.goto import parse_target
from app.models.palette import Entry
from app.models.sequences import MEANING_OF, WORD_OF, Kind
from app.settings import state_folder

GLOSSARY = (
    ("run", "the one range of consecutive live positions of a sequence"),
    ("frontier", "the last published position; the only legal next append is one after it"),
    ("group", "positions pooled to one index row, counted from the first live one"),
    ("bank", "a complete copy of all owners; one is public, the other the chunk's working image"),
    ("flip", "one integer changes, and the private bank is the public one"),
    ("owner", "the only code that writes one kind of state, such as the keys of attention"),
    ("digest", "a short hash of an owner's visible content"),
    ("sealed", "written to the end, checked and hashed, ready for the flip; unsealed before that"),
    ("stale", "an owner whose private bank lacks what the last transaction wrote: catch-up is due"),
    ("cell", "a physical place; the same position may move to another one"),
)


class Page(QDialog):
    """A window with text that does not block the main one."""

    def __init__(self, title: str, html: str, parent) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setObjectName(f"page.{title}")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        layout = QVBoxLayout(self)
        text = QTextBrowser()
        text.setAccessibleName(title)
        text.setHtml(html)
        layout.addWidget(text)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.setAccessibleName(self.tr("Buttons"))
        buttons.rejected.connect(self.close)
        layout.addWidget(buttons)
        self.resize(620, 640)


class ViewCommands:
    """Mixed into the main window."""

    def zoom(self, factor: float) -> None:
        """Zoom the drawing with the keyboard."""
        self.focused_drawing().zoom(factor)

    def fit_all(self) -> None:
        """Show everything in the drawing with the keyboard."""
        self.focused_drawing().fit_all()

    def fit_selection(self) -> None:
        """Show the selection as large as it goes."""
        self.focused_drawing().fit_selection()

    def pan(self, screens: float) -> None:
        """Move along in the drawing with the keyboard."""
        self.focused_drawing().pan(screens)

    def follow(self) -> None:
        """Keep the newest positions in view."""
        self.run_panel.detail.follow_frontier()

    def toggle_full_screen(self, on: bool) -> None:
        """The whole screen, or a window."""
        self.showFullScreen() if on else self.showNormal()

    # palette ---------------------------------------------------------------------------------

    def open_palette(self) -> None:
        """Show the command palette."""
        self.palette_.open_over(self)

    def palette_entries(self, text: str) -> list[Entry]:
        """Commands, panels and scenarios; what was typed as a place comes first."""
        entries: list[Entry] = []
        target = parse_target(text) if text else None
        if target is not None:
            words = self.tr("Go to {0} {1}").format(target.kind, f"{target.number:,}")
            reason = "" if self.client.session else self.actions_.reason("go.to")
            entries.append(Entry(f"goto:{text}", f"{words} {text}", "Go", "", reason))
        entries += [
            Entry(
                spec.id,
                self.actions_[spec.id].text().replace("&&", "&").rstrip("."),
                spec.menu.replace("/", " > "),
                ", ".join(spec.keys),
                self.actions_.reason(spec.id),
            )
            for spec in self.actions_
        ]
        entries += [
            Entry(f"panel:{id}", f"Show {spec.title}", "Panels")
            for id, spec in self.docks.specs.items()
        ]
        for path in resources.scenarios():
            words = path.stem.replace("-", " ")
            entries.append(Entry(f"open:{path}", f"Open scenario {words}", "File"))
        for path, title, _ in resources.samples():
            entries.append(Entry(f"open:{path}", f"Open sample {title}", "File"))
        return entries

    def run_entry(self, id: str) -> None:
        """Run what was chosen in the palette."""
        kind, _, rest = id.partition(":")
        if kind == "goto":
            target = parse_target(rest)
            if target is not None:
                self.go_to(target)
        elif kind == "panel":
            self.go_to_panel(rest)
        elif kind == "open":
            self.open_path(rest)
        else:
            self.actions_[id].trigger()

    # help ------------------------------------------------------------------------------------

    def show_shortcuts(self) -> None:
        """Every command with its keys."""
        rows = "".join(
            f"<tr><td>{menu.replace('/', ' &gt; ')}</td><td>{text}</td>"
            f"<td><tt>{keys}</tt></td></tr>"
            for menu, text, keys in shortcut_rows()
        )
        head = "<p>In drawings: arrow keys move by a position, with Ctrl by a group, Page keys by "
        head += "a screen, Home and End to the ends; with Shift they select a range.</p>"
        self._page(self.tr("Keyboard shortcuts"), f"{head}<table cellpadding=4>{rows}</table>")

    def show_glossary(self) -> None:
        """What the words mean."""
        kinds = [(WORD_OF[Kind(kind)], text) for kind, text in MEANING_OF.items()]
        rows = "".join(
            f"<tr><td><b>{word}</b></td><td>{text}</td></tr>" for word, text in (*kinds, *GLOSSARY)
        )
        self._page(self.tr("Words and kinds"), f"<table cellpadding=4>{rows}</table>")

    def show_about(self) -> None:
        """Version and licence."""
        text = self.tr("Inspects the state of LLM inference: runs, groups, holes and two banks.")
        html = f"<h3>Bankflip {VERSION}</h3><p>{text}</p><p>Apache License 2.0. Uses Qt for Python"
        self._page(self.tr("About Bankflip"), html + " (LGPL), MLX (MIT) and NumPy (BSD).</p>")

    def _page(self, title: str, html: str) -> None:
        for page in self.findChildren(Page):
            page.close()
        Page(title, html, self).show()

    def open_log_folder(self) -> None:
        """Show where the log is."""
        self.open_folder(state_folder())

    def diagnostics(self) -> str:
        """Versions, platform, backend and the end of the log."""
        snapshot = self.client.snapshot
        backend = snapshot.backend if snapshot is not None else "none yet"
        lines = self.logging.last_lines() if self.logging is not None else ""
        return log.diagnostics(backend, f"Bankflip {VERSION}\n\n{lines}")

    def copy_diagnostics(self) -> None:
        """Put the diagnostics on the clipboard."""
        QGuiApplication.clipboard().setText(self.diagnostics())
        self.status.showMessage(self.tr("Diagnostics copied"), 4000)
