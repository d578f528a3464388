"""The plan of a transaction: named stages in order, each with what it does and how it is judged.

A fault is a plan built differently: `build_plan` hands every stage to `wrap` once, and a plan
without faults has no hook in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.stage import Stage, Step


def nothing() -> None:
    """A part of a stage that has nothing to do."""


@dataclass(frozen=True, slots=True)
class PlanStage:
    """One stage of one transaction. Executing it is `enter`, `run`, `settle`, `leave`."""

    name: str
    kind: str
    """`transaction` or `graph`."""
    run: Callable[[], None]
    settle: Callable[[], None] = nothing
    """Evaluate (inspect) and judge what `run` made."""
    enter: Callable[[], None] = nothing
    leave: Callable[[], None] = nothing
    seq: int = 0
    piece: int = 0
    graph: Stage | None = None
    step: Callable[[], Step] | None = None
    """The working context of a graph stage; it exists once the piece was entered."""

    def execute(self) -> None:
        """Do the stage. Raises: whatever makes it fail."""
        self.enter()
        self.run()
        self.settle()
        self.leave()


Wrap = Callable[[PlanStage], PlanStage]


def build_plan(stages: Iterable[PlanStage], wrap: Wrap | None = None) -> tuple[PlanStage, ...]:
    """The stages, each wrapped once where faults are armed."""
    return tuple(stages) if wrap is None else tuple(wrap(stage) for stage in stages)
