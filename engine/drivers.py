"""The one place that chooses a driver: this engine's own models, or those of mlx-lm.

A person opens a folder; what lies in it decides. The session before stays until the new one stands.
"""

from __future__ import annotations

from engine import commands as c
from engine.driver import Driver
from engine.errors import EngineError
from engine.events import Emit, Trouble
from engine.lm_folder import is_lm_folder, need_mlx_lm
from engine.progress import CancelToken


class AnyDriver:
    """A driver for whichever kind of model is open; the face of `Driver`."""

    def __init__(self, emit: Emit, cancel: CancelToken) -> None:
        self._emit, self._cancel = emit, cancel
        self._own = Driver(emit, cancel)
        self._now = self._own

    @property
    def has_work(self) -> bool:
        """True while `turn` has something to do."""
        return self._now.has_work

    def handle(self, command: c.Command, ticket: int = 0) -> None:
        """Take one command. Trouble is an event, never an exception."""
        if not isinstance(command, c.OpenModel):
            self._now.handle(command, ticket)
        elif is_lm_folder(command.folder):
            self._open_lm(command, ticket)
        else:
            before, self._now = self._now, self._own
            opened = self._own.engine
            self._own.handle(command, ticket)
            if before is not self._own and self._own.engine is opened:
                self._now = before  # it could not be opened, what stood before still stands
            elif before is not self._own:
                before.close()

    def _open_lm(self, command: c.OpenModel, ticket: int) -> None:
        try:
            need_mlx_lm(command.folder)
            from engine.lm_driver import LmDriver

            driver = LmDriver(self._emit, self._cancel)
            driver.open_session(command, ticket)
        except (EngineError, OSError, ValueError) as error:
            self._emit(ticket, Trouble("OpenModel", str(error)))
            return
        before, self._now = self._now, driver
        before.close()
        if before is self._own:
            self._own = Driver(self._emit, self._cancel)

    def turn(self) -> None:
        """One bounded unit of work."""
        self._now.turn()

    def close(self) -> None:
        """Discard what is open and close the capture."""
        self._now.close()
