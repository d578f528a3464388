"""The inspector: what is selected, and why it is so, with links to the events behind it."""

from __future__ import annotations

from app.models.inspector import HINT, Known, foreign_tree, tree
from app.models.tree import Node
from app.views.panel import Panel, label, set_text
from app.views.tables import PropertyTree


class InspectorPanel(Panel):
    """Properties of the selection, each "why" with a link."""

    title = "Inspector"

    def build(self) -> None:
        self.hint = label(HINT, self.tr("What to select"), second=True, wrap=True)
        self.tree = PropertyTree(self.tr("Properties"))
        self.box.setContentsMargins(4, 4, 4, 4)
        self.box.addWidget(self.hint)
        self.box.addWidget(self.tree, 1)
        self.tree.followed.connect(self.jump)

    def show_record(self, record) -> None:
        self.refresh()

    def show_stages(self, stages) -> None:
        if self.hub.selection.stage is not None:
            self.refresh()

    def rebuild(self) -> None:
        state, selection = self.state(), self.hub.selection
        nodes: tuple[Node, ...] = ()
        if state is not None and not selection.is_empty:
            nodes = tree(Known(state, self.journal(), self._stages()), selection)
        elif state is None:
            nodes = foreign_tree(self.client.tracks, selection)
        self.hint.setVisible(not nodes)
        self.tree.setVisible(bool(nodes))
        self.tree.set_nodes(nodes)
        set_text(
            self.hint,
            HINT if state is not None or self.client.tracks else "No session is open.",
            "text2",
        )

    def _stages(self):
        if self.client.shown is not None:
            return self.client.shown.stages
        return self.client.stages.stages if self.client.stages is not None else ()
