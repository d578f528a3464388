"""The engine's thread: one long-lived object in it takes commands and tells events.

Commands come through a queue that no thread can lose, the signal only wakes the worker. The
driver is made, used and closed in this thread, since arrays of the array library cannot be
evaluated in another one.
"""

from __future__ import annotations

import logging
import queue
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot

from engine.events import Body, Trouble
from engine.progress import CancelToken

if TYPE_CHECKING:
    from engine.commands import Command

log = logging.getLogger(__name__)

Inbox = queue.SimpleQueue["tuple[int, Command]"]


class DriverLike(Protocol):
    """What the worker needs of `engine.driver.Driver`."""

    @property
    def has_work(self) -> bool:
        """True while `turn` has something to do."""

    def handle(self, command: Command, ticket: int = 0) -> None:
        """Take a command; long work is left for `turn`."""

    def turn(self) -> None:
        """Do one bounded unit of work."""

    def close(self) -> None:
        """Let go of files and arrays."""


MakeDriver = Callable[[Callable[[int, Body], None], CancelToken], DriverLike]


def engine_driver(emit: Callable[[int, Body], None], cancel: CancelToken) -> DriverLike:
    """The engine's own driver; imported here, so that the window opens before the engine does."""
    from engine.drivers import AnyDriver

    driver: DriverLike = AnyDriver(emit, cancel)
    return driver


class Worker(QObject):
    """Lives in the engine's thread; drives the driver from a zero timer while it has work."""

    told = Signal(int, object)

    def __init__(self, inbox: Inbox, cancel: CancelToken, make: MakeDriver) -> None:
        super().__init__()
        self._inbox, self._cancel = inbox, cancel
        self._driver = make(self.told.emit, cancel)
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self.turn)

    @Slot()
    def wake(self) -> None:
        """Take every command that waits."""
        while True:
            try:
                ticket, command = self._inbox.get_nowait()
            except queue.Empty:
                break
            try:
                self._driver.handle(command, ticket)
            except Exception as error:
                self._trouble(type(command).__name__, ticket, error)
        self._set_going()

    @Slot()
    def turn(self) -> None:
        """One unit of work."""
        try:
            if self._driver.has_work:
                self._driver.turn()
        except Exception as error:
            self._trouble("turn", 0, error)
            self._timer.stop()
            return
        self._set_going()

    def _set_going(self) -> None:
        if self._driver.has_work and not self._timer.isActive():
            self._timer.start()
        elif not self._driver.has_work:
            self._timer.stop()

    def _trouble(self, command: str, ticket: int, error: Exception) -> None:
        """A bug of ours: tell it in the window, keep the traceback, let the session live."""
        self.told.emit(ticket, Trouble(command, f"internal error: {type(error).__name__}: {error}"))
        sys.excepthook(type(error), error, error.__traceback__)

    def close(self) -> None:
        """Close the driver in the thread that made it."""
        self._timer.stop()
        self._driver.close()


class EngineThread(QThread):
    """The thread; makes its worker inside itself and takes it down there."""

    told = Signal(int, object)
    woken = Signal()

    def __init__(self, cancel: CancelToken, make: MakeDriver = engine_driver) -> None:
        super().__init__()
        self.setObjectName("engine")
        self._cancel, self._make = cancel, make
        self.inbox: Inbox = queue.SimpleQueue()

    def ask(self, ticket: int, command: Command) -> None:
        """Queue a command from the main thread."""
        self.inbox.put((ticket, command))
        self.woken.emit()

    def run(self) -> None:
        """The thread's own code; everything of the engine begins and ends in here."""
        worker = Worker(self.inbox, self._cancel, self._make)
        worker.told.connect(self.told, Qt.ConnectionType.DirectConnection)
        self.woken.connect(worker.wake, Qt.ConnectionType.QueuedConnection)
        worker.wake()
        self.exec()
        self.woken.disconnect(worker.wake)
        worker.close()

    def stop(self) -> None:
        """End the thread and wait for it; what is in flight is cancelled."""
        self._cancel.set()
        self.quit()
        self.wait()
