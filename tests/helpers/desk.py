"""A driver at a desk: commands go in, and everything that it says is kept."""

from __future__ import annotations

from typing import Any, TypeVar

from engine import commands as c
from engine.driver import Driver
from engine.events import Trouble
from engine.progress import CancelToken
from engine.snapshot import Record

T = TypeVar("T")
TINY = "qwen4exp-tiny"


class Desk:
    """A driver, and everything that it said."""

    def __init__(self, folder: str | None = TINY, **settings: Any) -> None:
        self.said: list[Any] = []
        self.tickets: list[int] = []
        self.cancel = CancelToken()
        self.driver = Driver(self.hear, self.cancel)
        if folder is not None or settings:
            self.do(c.OpenModel(folder, "cpu", **settings))

    def hear(self, ticket: int, body: Any) -> None:
        self.tickets.append(ticket)
        self.said.append(body)

    def do(self, command: c.Command, turns: int | None = None) -> list[Any]:
        """One command and all the turns that it asks for; what was said meanwhile."""
        start = len(self.said)
        self.driver.handle(command, 7)
        n = 0
        while self.driver.has_work and (turns is None or n < turns):
            self.driver.turn()
            n += 1
            assert n < 20_000
        return self.said[start:]

    def one(self, command: c.Command, kind: type[T]) -> T:
        """The only event of a kind that a command gave."""
        found = [body for body in self.do(command) if isinstance(body, kind)]
        assert len(found) == 1, found
        return found[0]

    def trouble(self, command: c.Command) -> str:
        """The sentence of a command that could not be carried out; the session is as before."""
        engine = self.driver.engine
        before = None if engine is None else engine.digests()
        sentence = self.one(command, Trouble).sentence
        assert sentence
        assert "\n" not in sentence
        assert before is None or self.driver.engine is None or engine.digests() == before  # type: ignore[union-attr]
        return sentence

    def last(self, kind: type[T]) -> T:
        return next(body for body in reversed(self.said) if isinstance(body, kind))

    def records(self) -> list[Record]:
        return [body for body in self.said if isinstance(body, Record)]
