"""What the Run menu and the engine bar do: commands to the engine, nothing else."""

from __future__ import annotations

from dataclasses import replace

from app.models.goto import made_up

FED_ON_OPEN = 64
HOLE_START = 100
"""Where a hole is tried on a sequence that has no frontier yet."""


class RunCommands:
    """Mixed into the main window."""

    def send(self, command) -> int:
        """Ask the engine; the past is left first, since what is done happens now."""
        self.client.show(None)
        return self.client.send(command)

    @property
    def seq(self) -> int:
        """The chosen sequence."""
        return self.hub.selection.seq

    def run(self) -> None:
        """Execute chunks until the queue is empty."""
        from engine.commands import Run

        self.send(Run())

    def pause(self) -> None:
        """Stop after the chunk in flight."""
        from engine.commands import Pause

        self.client.send(Pause())

    def run_or_pause(self) -> None:
        """The one that makes sense now."""
        if self.client.feed.running:
            self.pause()
        elif not self.actions_.reason("run.run"):
            self.run()

    def run_to_position(self) -> None:
        """Run until the selected position is published."""
        from engine.commands import Run

        if self.hub.selection.start is not None:
            self.send(Run(to_position=self.hub.selection.start))

    def step_stage(self) -> None:
        """One stage of the next chunk."""
        from engine.commands import StepStage

        self.send(StepStage())

    def step_chunk(self) -> None:
        """The next chunk, or the rest of the open one."""
        from engine.commands import StepChunk

        self.send(StepChunk())

    def step_token(self) -> None:
        """A chunk of one token."""
        from engine.commands import StepToken

        self.send(StepToken())

    def finish(self) -> None:
        """The rest of the open transaction."""
        from engine.commands import Finish

        self.send(Finish())

    def discard(self) -> None:
        """Throw the open transaction away."""
        from engine.commands import Discard

        self.send(Discard())

    def cancel(self) -> None:
        """Stop whatever is in flight: the engine's work and the reading of files."""
        self.client.cancel()
        self.readers_cancel()

    def feed(self, tokens: tuple[int, ...]) -> None:
        """Queue tokens on the chosen sequence."""
        from engine.commands import Feed

        self.send(Feed(self.seq, tokens))

    def feed_made_up(self) -> None:
        """Queue something to run, of ids that the model knows."""
        session = self.client.session
        n_known = session.n_vocabulary if session is not None else None
        self.feed(tuple(i % n_known if n_known else i for i in made_up(FED_ON_OPEN)))

    def focus_feed(self) -> None:
        """Put the keyboard into the field for tokens."""
        self.engine_bar.feed.setFocus()
        self.engine_bar.feed.selectAll()

    def clear_feed(self) -> None:
        """Forget the queue of the chosen sequence."""
        from engine.commands import ClearFeed

        self.send(ClearFeed(self.seq))

    def set_fast(self, on: bool) -> None:
        """Fast or inspect mode, for the session in use."""
        from engine.commands import SetMode

        self.client.send(SetMode("fast" if on else "inspect"))

    def clear_faults(self) -> None:
        """Disarm every fault."""
        from engine.commands import ClearFaults

        self.client.send(ClearFaults())

    def append_hole(self) -> None:
        """Append frontier + 1, + 2 and + 4: refused, and shown where it would have been."""
        from engine.commands import Do
        from engine.ops import Append

        view = self.run_panel.view_of(self.seq)
        first = HOLE_START if view is None or view.n_live == 0 else view.stop
        positions = [first, first + 1, first + 3]
        has_model = self.client.snapshot is not None and self.client.snapshot.backend != "none"
        self.send(Do(Append(self.seq, positions, made_up(3) if has_model else None)))
        self.raise_panel("problems")

    def run_check(self, name: str) -> None:
        """One of the one-click checks."""
        from engine.commands import RunCheck

        self.send(RunCheck(name))
        self.raise_panel("checks")

    def undo(self) -> None:
        """Restore the state before the last edit op, or say why not."""
        from engine.commands import Undo

        self.send(Undo())

    def restart(self) -> None:
        """The same session with nothing in it, on the backend and in the mode chosen by now."""
        if self.last_open is not None:
            self.feed_on_open = self.client.scenario is None
            self.pending_scenario = self.client.scenario
            self.start_session(replace(self.last_open, **self.client.chosen))
