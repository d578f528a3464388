"""The driver of a session on a model of mlx-lm: the commands of `Driver`, where they make sense.

A chunk is one call of the model, so a turn is a chunk and single stages can't be stepped; the
stages of the chunk are told when it is over. What has no meaning here is answered by a sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

from engine import commands as c
from engine.atomic import replacing
from engine.driver import Driver
from engine.errors import Malformed, Rejected
from engine.events import LimitsKnown, SessionOpened, Trial
from engine.limits import limits
from engine.lm_checks import CHECKS
from engine.lm_folder import open_lm
from engine.lm_look import record_of, trial_views
from engine.lm_session import IMMOVABLE, LmSession
from engine.lm_views import arrays_of, read_array, units
from engine.lm_watch import KINDS, stages_of
from engine.ops import Fail
from engine.run import Run
from engine.snapshot import CheckResult, LimitView
from engine.terms import FailKind

NO_STAGES: Final = (
    "a model of mlx-lm runs a whole chunk in one call: step by chunk or by token instead"
)


class LmDriver(Driver):
    """Steers one session at a time; see `Driver` for what it takes and tells."""

    @property
    def session(self) -> LmSession:
        """The open session."""
        return cast(LmSession, self._engine)

    def open_session(self, command: c.OpenModel, ticket: int = 0) -> None:
        """Open a folder and tell about it. Raises: Unreadable, Malformed; nothing was told."""
        if command.window is not None:
            raise Malformed(str(command.folder), "a model of mlx-lm has windows of its own")
        session = open_lm(
            str(command.folder),
            backend=command.backend,
            capacity=command.capacity,
            mode=command.mode,
        )
        self._ticket = ticket
        self._take(session)

    def _take(self, session: LmSession) -> None:
        session.cancel = self._cancel
        self.engine = cast(Any, session)
        blank = session.blank
        self._tell(
            SessionOpened(
                session.name,
                session.backend,
                session.stage_names,
                units(blank),
                arrays_of(blank),
                session.n_vocabulary,
            )
        )
        self._tell_snapshot()
        self._tell_feed()
        self._tell_faults()

    def _open(self, command: c.OpenModel) -> None:
        self.close()
        self.open_session(command, self._ticket)

    def _run_of(self, seq: int) -> Run:
        return self.session.history.of(seq).run

    def _step_stage(self, command: c.StepStage) -> None:
        raise ValueError(NO_STAGES)

    def _arm(self, command: c.ArmFault) -> None:
        kind = FailKind(command.kind)
        graph = command.stage.startswith("layer.")
        possible = [k for k in KINDS if graph or k is not FailKind.NONFINITE]
        if kind not in possible:
            raise ValueError(
                f"kind: a model of mlx-lm can fail after {command.stage} with one of "
                f"{', '.join(possible)}, given {kind}"
            )
        super()._arm(command)

    def _try(self, command: c.Try) -> None:
        session, op = self.session, command.op
        inner = op.during if isinstance(op, Fail) else op
        try:
            applied = session.judge(inner)
        except Rejected as error:
            self._tell(Trial(record_of(session, op, error, session.sealed, 0)))
            return
        record = record_of(session, op, None, session.sealed, 0)
        self._tell(Trial(_with_sequences(record, applied.history)))

    def _read(self, command: c.ReadArray) -> None:
        held = self.session.sequences.get(command.seq)
        self._tell(read_array(held or self.session.blank, command))

    def _limits(self, command: c.Limits) -> None:
        self._tell(LimitsKnown(command.seq, limit_views(self.session, command.seq)))

    def _run_check(self, command: c.RunCheck) -> None:
        if command.name not in CHECKS:
            known = ", ".join(CHECKS)
            raise ValueError(
                f"check: a model of mlx-lm has {known} (it has no groups), given {command.name}"
            )
        self._check = CHECKS[command.name](self.session)
        self._cancel.clear()

    def _save(self, command: c.SaveSession) -> None:
        """The caches of sequence 0 as mlx-lm writes them, atomically."""
        path = Path(command.path)
        try:
            with replacing(path, ".safetensors") as beside:
                self.session.sequences[0].save(beside)
        except (RuntimeError, OSError) as error:
            raise OSError(f"{path}: can't be written: {error}") from error
        self._tell(CheckResult("save", True, f"saved as a prompt cache of mlx-lm to {path}"))

    def _load(self, command: c.LoadSession) -> None:
        raise ValueError("a saved session needs the model that it was made with: open that first")


def _with_sequences(record: Any, history: Any) -> Any:
    from dataclasses import replace

    return replace(record, sequences=trial_views(history))


def limit_views(session: LmSession, seq: int) -> tuple[LimitView, ...]:
    """How far each op may go on a sequence, and why not further."""
    known = limits(session.history, seq)
    n = session.history.of(seq).run.n
    first = session.sequences[seq].first_target if seq in session.sequences else 0
    kept = "" if first == 0 else "no-checkpoint: no earlier state is kept"
    immovable = f"not-derivable: {IMMOVABLE}"
    room = known.append_count.high if known.append_count.possible else None
    return (
        LimitView("append at", n, n, immovable),
        LimitView("append count", 1 if room else None, room, "capacity"),
        LimitView("evict_front", None, None, immovable),
        LimitView("rewind", n if n else None, first if n else None, kept or "out-of-range: 0"),
        LimitView("shift down", None, None, immovable),
        LimitView("shift up", None, None, immovable),
        LimitView("fork", n if n else None, first if n else None, kept or "out-of-range: 0"),
    )


__all__ = ["LmDriver", "limit_views", "stages_of"]
