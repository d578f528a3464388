"""Remembered choices with their defaults, in one place; layout versions included."""

from __future__ import annotations

import re
from pathlib import Path

import platformdirs
from PySide6.QtCore import QByteArray, QSettings

from app.models.preferences import LEAST_BUDGET, MOST_CHUNK, Preferences
from engine.printable import printable

ORGANISATION, APPLICATION = "Bankflip", "Bankflip"
LAYOUT_VERSION = 2
"""Raised whenever the set of docks or bars changes; older layouts are then ignored."""
MOST_RECENT = 10


class Settings:
    """Typed access to the settings; `fresh` starts from the defaults and writes nothing.

    What is chosen in a fresh window still holds until it is closed.
    """

    def __init__(self, fresh: bool = False, path: Path | None = None) -> None:
        """Use `path` as an ini file where given (tests), else the user's own settings."""
        self.fresh, self._path = fresh, path
        self._store: QSettings | None = None
        self._kept: dict[str, str] = {}
        if fresh:
            return
        if path is not None:
            self._store = QSettings(str(path), QSettings.Format.IniFormat)
        else:
            self._store = QSettings(
                QSettings.Format.IniFormat, QSettings.Scope.UserScope, ORGANISATION, APPLICATION
            )

    def _get(self, key: str, default: str) -> str:
        if self._store is None:
            return self._kept.get(key, default)
        value = self._store.value(key, default)
        return default if value is None else str(value)

    def _set(self, key: str, value: object) -> None:
        if self._store is None:
            self._kept[key] = str(value)
        else:
            self._store.setValue(key, value)

    def _number(self, key: str, default: int) -> int:
        """A whole number; the default where the file holds anything else."""
        value = self._get(key, "")
        return int(value) if re.fullmatch("[0-9]{1,18}", value) else default

    @property
    def scheme(self) -> str:
        """Colour scheme: `system`, `light`, `dark` or `contrast`."""
        value = self._get("look/scheme", "system")
        return value if value in ("system", "light", "dark", "contrast") else "system"

    @scheme.setter
    def scheme(self, value: str) -> None:
        self._set("look/scheme", value)

    @property
    def text_size(self) -> int:
        """Text size in percent of the system's, 90 to 150."""
        return max(90, min(150, self._number("look/text_size", 100)))

    @text_size.setter
    def text_size(self, value: int) -> None:
        self._set("look/text_size", value)

    @property
    def reduced_motion(self) -> bool:
        """True: no flashes even where the system allows them."""
        return self._get("look/reduced_motion", "false") == "true"

    @reduced_motion.setter
    def reduced_motion(self, value: bool) -> None:
        self._set("look/reduced_motion", "true" if value else "false")

    @property
    def patterns(self) -> bool:
        """True: patterns also where colours alone would do."""
        return self._get("look/patterns", "false") == "true"

    @patterns.setter
    def patterns(self, value: bool) -> None:
        self._set("look/patterns", "true" if value else "false")

    @property
    def chunk(self) -> int:
        """Tokens a chunk, 1 to 4096."""
        return max(1, min(MOST_CHUNK, self._number("engine/chunk", 5)))

    @chunk.setter
    def chunk(self, value: int) -> None:
        self._set("engine/chunk", value)

    @property
    def backend(self) -> str:
        """`auto`, `cpu`, `metal` or `cuda`."""
        value = self._get("engine/backend", "auto")
        return value if value in ("auto", "cpu", "metal", "cuda") else "auto"

    @backend.setter
    def backend(self, value: str) -> None:
        self._set("engine/backend", value)

    @property
    def mode(self) -> str:
        """Mode of new sessions: `inspect` or `fast`."""
        value = self._get("engine/mode", "inspect")
        return value if value in ("inspect", "fast") else "inspect"

    @mode.setter
    def mode(self, value: str) -> None:
        self._set("engine/mode", value)

    @property
    def budget_bytes(self) -> int | None:
        """Bytes that a new session may take; None leaves it to the engine."""
        value = self._number("engine/budget_bytes", 0)
        return value if value >= LEAST_BUDGET else None

    @budget_bytes.setter
    def budget_bytes(self, value: int | None) -> None:
        self._set("engine/budget_bytes", "" if value is None else value)

    def preferences(self) -> Preferences:
        """All that the dialog of preferences shows."""
        return Preferences(
            scheme=self.scheme,
            patterns=self.patterns,
            reduced_motion=self.reduced_motion,
            text_size=self.text_size,
            chunk=self.chunk,
            backend=self.backend,
            mode=self.mode,
            budget_bytes=self.budget_bytes,
        )

    @property
    def tour(self) -> str:
        """What became of the tour: empty (never begun), `finished` or `dismissed`."""
        value = self._get("help/tour", "")
        return value if value in ("finished", "dismissed") else ""

    @tour.setter
    def tour(self, value: str) -> None:
        self._set("help/tour", value)

    @property
    def recent(self) -> list[str]:
        """Absolute paths of the last files, the newest first."""
        return [line for line in self._get("files/recent", "").split("\n") if line]

    def add_recent(self, path: str) -> None:
        """Put a path on top of the recent files, where the settings can hold its name."""
        absolute = str(Path(path).resolve())
        if "\n" in absolute or printable(absolute) != absolute:
            return
        others = [item for item in self.recent if item != absolute]
        self._set("files/recent", "\n".join([absolute, *others][:MOST_RECENT]))

    def clear_recent(self) -> None:
        """Forget the recent files."""
        self._set("files/recent", "")

    def layout(self) -> tuple[QByteArray, QByteArray] | None:
        """(geometry, state) of the window; None where none of this version is kept."""
        if self._store is None or self._get("layout/version", "") != str(LAYOUT_VERSION):
            return None
        geometry, state = self._store.value("layout/geometry"), self._store.value("layout/state")
        if not isinstance(geometry, QByteArray) or not isinstance(state, QByteArray):
            return None
        return geometry, state

    def keep_layout(self, geometry: QByteArray, state: QByteArray | None) -> None:
        """Remember the window; `state` None leaves the docks as they were remembered."""
        self._set("layout/geometry", geometry)
        if state is not None:
            self._set("layout/version", LAYOUT_VERSION)
            self._set("layout/state", state)

    def forget_layout(self) -> None:
        """Use the default layout from the next start on."""
        if self._store is not None:
            self._store.remove("layout")

    @property
    def marks_folder(self) -> Path | None:
        """Where bookmarks of files without a place of their own are kept; None: nowhere."""
        if self.fresh:
            return None
        beside = self._path.parent if self._path is not None else state_folder()
        return beside / "bookmarks"

    def sync(self) -> None:
        """Write to the file now."""
        if self._store is not None:
            self._store.sync()


def state_folder() -> Path:
    """Where the log, the crash trace and autosaved things are kept."""
    return Path(platformdirs.user_state_dir("bankflip", appauthor=False))
