"""Which commands can be used now, and why the others can't."""

from __future__ import annotations

from app.action_list import NO_SESSION

UPDATE_MS = 40
"""Enabled states and labels are looked at again at most this often while chunks run."""


class EnabledStates:
    """Mixed into the main window."""

    def _soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start(UPDATE_MS)

    def update_actions(self) -> None:
        """Enable what can be used now; the others say why not."""
        client, records = self.client, self.client.records
        open_ = self.stack.currentWidget() is self.run_panel
        for spec in self.actions_:
            reason = "" if open_ or not spec.session else NO_SESSION
            if not reason and spec.menu.startswith("Run") and client.offline:
                reason = "a recording is shown: it can be looked at, not run"
            self.actions_.enable(spec.id, reason or self._reason(spec.id))
        shown = client.shown
        newest = records[-1].number if records else 0
        self.time_bar.event_label(shown.number if shown else newest, newest)
        fast = client.snapshot is not None and client.snapshot.mode == "fast"
        self.actions_["run.fast"].setChecked(fast)
        self.update_tour()

    def _reason(self, id: str) -> str:
        """Why one command can't be used in an open session; empty where it can."""
        client = self.client
        opened = client.snapshot.open if client.snapshot is not None else None
        queued = sum(n for _, n in client.feed.queued)
        if id in ("run.run", "run.stage", "run.chunk", "run.token", "run.to"):
            if client.feed.running:
                return "chunks are running: pause first"
            if not queued and opened is None:
                return "no token is queued: feed some (Ctrl+D)"
            if id == "run.to" and self.hub.selection.start is None:
                return "no position is selected"
        if id == "run.pause" and not client.feed.running:
            return "nothing is running"
        if id in ("run.finish", "run.discard") and opened is None:
            return "no transaction is open"
        if id == "run.unfeed" and not queued:
            return "no token is queued"
        if id == "run.clear_faults" and not client.faults.faults:
            return "no fault is armed"
        if id in ("go.first", "go.back_event") and self.shown_index <= 0:
            return "there is no earlier event"
        if id in ("go.next_event", "go.live") and client.shown is None:
            return "the newest state is shown"
        if id == "go.back" and not self.hub.trail.can_go_back:
            return "nothing was selected before"
        if id == "go.forward" and not self.hub.trail.can_go_forward:
            return "nothing was selected after"
        if id in ("file.save", "file.record") and client.offline:
            return "a recording is shown: it can be looked at, not changed"
        return self.mark_reason(id)
