"""Every command of the window, once: menus, toolbars, palette and shortcut page come from here.

An action knows its words, keys and icon. What it does is a method of the window, named in
`handler`. An action that can't be used says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence

from app import theme
from app.action_list import ACTIONS, ActionSpec


class Actions(QObject):
    """The QActions of one window, by id."""

    def __init__(self, owner: QObject, specs: tuple[ActionSpec, ...] = ACTIONS) -> None:
        super().__init__(owner)
        self.specs = {spec.id: spec for spec in specs}
        self.actions = {spec.id: self._make(spec) for spec in specs}
        self._reasons: dict[str, str] = {}
        for spec in specs:
            method: Callable[..., object] = getattr(owner, spec.handler)
            self._connect(self.actions[spec.id], spec, method)

    def _make(self, spec: ActionSpec) -> QAction:
        action = QAction(self.tr(spec.text), self)
        action.setObjectName(spec.id)
        action.setStatusTip(self.tr(spec.tip))
        keys = keys_of(spec)
        action.setShortcuts(keys)
        shown = f" ({keys[0].toString(QKeySequence.SequenceFormat.NativeText)})" if keys else ""
        action.setToolTip(self.tr(spec.tip) + shown)
        action.setCheckable(spec.checkable)
        if spec.drawing:
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        return action

    def _connect(self, action: QAction, spec: ActionSpec, method: Callable[..., object]) -> None:
        if spec.argument is not None:
            action.triggered.connect(lambda _on=False: method(spec.argument))
        elif spec.checkable:
            action.triggered.connect(lambda on=False: method(on))
        else:
            action.triggered.connect(lambda _on=False: method())

    def __getitem__(self, id: str) -> QAction:
        return self.actions[id]

    def __iter__(self) -> Iterator[ActionSpec]:
        return iter(self.specs.values())

    def paint_icons(self) -> None:
        """Draw the icons in the colours of the theme in use."""
        for spec in self:
            if spec.icon:
                self.actions[spec.id].setIcon(theme.icon(spec.icon))

    def enable(self, id: str, reason: str = "") -> None:
        """Enable an action, or disable it and keep why."""
        action, spec = self.actions[id], self.specs[id]
        if self._reasons.get(id) == reason and action.isEnabled() != bool(reason):
            return
        self._reasons[id] = reason
        action.setEnabled(not reason)
        action.setStatusTip(self.tr(spec.tip) + (f" (not now: {reason})" if reason else ""))

    def reason(self, id: str) -> str:
        """Why an action can't be used now; empty where it can."""
        return self._reasons.get(id, "")

    def of_menu(self, path: str) -> list[ActionSpec]:
        """The actions of a menu or a submenu, in order."""
        return [spec for spec in self if spec.menu == path]

    def drawing_actions(self) -> list[QAction]:
        """Actions whose keys act only in drawings."""
        return [self.actions[spec.id] for spec in self if spec.drawing]


def keys_of(spec: ActionSpec) -> list[QKeySequence]:
    """The keys of a command: its own first, then what else the platform uses for it."""
    keys = [QKeySequence(key) for key in spec.keys]
    if spec.standard:
        # empty for Preferences and Quit off macOS and KDE, so our own are the fallback
        standard = QKeySequence.StandardKey[spec.standard]
        keys += [key for key in QKeySequence.keyBindings(standard) if key not in keys]
    return keys


def shortcut_rows() -> list[tuple[str, str, str]]:
    """(menu, command, keys) of everything that has keys, for the shortcut page."""
    return [
        (
            spec.menu,
            spec.text,
            ", ".join(spec.keys) + (" (in a drawing)" if spec.drawing else ""),
        )
        for spec in ACTIONS
        if spec.keys
    ]


def without_duplicates(specs: tuple[ActionSpec, ...] = ACTIONS) -> list[str]:
    """Keys that two actions claim; empty when each key means one thing."""
    seen: dict[str, str] = {}
    found: list[str] = []
    for spec in specs:
        for key in spec.keys:
            text = QKeySequence(key).toString(QKeySequence.SequenceFormat.PortableText)
            if text in seen:
                found.append(f"{text}: {seen[text]} and {spec.id}")
            seen[text] = spec.id
    return found
