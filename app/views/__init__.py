"""The panels of the window, listed once in `PANELS`.

A panel class is a QWidget with `__init__(client, hub, parent=None)`. The window calls those of
the slots `show_snapshot(Snapshot)`, `show_record(Record)`, `show_stages(StagesChanged)` and
`show_event(body)` that it has, and `show_selection(Selection, origin)` for the linked selection.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """One dock of the window."""

    id: str
    title: str
    target: str
    """`module:Class`, imported when the window is built."""
    area: str
    """`top`, `left`, `right`, `centre` (under the run map) or `bottom`."""
    tooltip: str
    tab: str = ""
    """Panels of one area with the same word share one stack of tabs."""


PANELS: tuple[PanelSpec, ...] = (
    PanelSpec(
        "pipeline",
        "Pipeline",
        "app.views.pipeline:PipelinePanel",
        "top",
        "Stages of the transaction, with state and time; right click to make one fail",
    ),
    PanelSpec(
        "cells",
        "Cells",
        "app.views.cell_panel:CellPanel",
        "centre",
        "Physical cells: where each position lies, what is shared and what is left over",
    ),
    PanelSpec(
        "inspector",
        "Inspector",
        "app.views.inspector:InspectorPanel",
        "right",
        "What is selected, who wrote it and why it is so",
        "inspect",
    ),
    PanelSpec(
        "banks",
        "Banks",
        "app.views.banks:BanksPanel",
        "right",
        "Public bank over private, every owner, every part of a run",
        "banks",
    ),
    PanelSpec(
        "faults",
        "Fault injector",
        "app.views.faults:FaultPanel",
        "right",
        "Make a stage fail, and see the proof that nothing was published",
        "inspect",
    ),
    PanelSpec(
        "limits",
        "Limits",
        "app.views.limits:LimitsPanel",
        "right",
        "How far each op may go from here, and why not further",
        "inspect",
    ),
    PanelSpec(
        "journal",
        "Journal",
        "app.views.journal:JournalPanel",
        "bottom",
        "All transactions; choose one to see the state after it",
        "journal",
    ),
    PanelSpec(
        "edits",
        "Edit ops",
        "app.views.edits:EditPanel",
        "right",
        "Append, evict, rewind, shift and more on the selected range; try before doing",
        "inspect",
    ),
    PanelSpec(
        "problems",
        "Problems",
        "app.views.problems:ProblemsPanel",
        "bottom",
        "What went wrong, the first error on top",
        "journal",
    ),
    PanelSpec(
        "marks",
        "Bookmarks",
        "app.views.marks:MarksPanel",
        "bottom",
        "Bookmarks and notes on positions, cells and events",
        "journal",
    ),
    PanelSpec(
        "spans",
        "Spans",
        "app.views.spans:SpansPanel",
        "bottom",
        "The run as a table",
        "journal",
    ),
    PanelSpec(
        "compare",
        "Compare",
        "app.views.compare:ComparePanel",
        "bottom",
        "Two events: which owners and which position differ first",
        "journal",
    ),
    PanelSpec(
        "scenario",
        "Scenario",
        "app.views.scenario:ScenarioPanel",
        "bottom",
        "Play a scenario op by op, or record what you do as one",
        "journal",
    ),
    PanelSpec(
        "checks",
        "Checks",
        "app.views.checks:ChecksPanel",
        "bottom",
        "Same as fresh, audit of digests, boundary sweep",
        "journal",
    ),
    PanelSpec(
        "tensor",
        "Tensor",
        "app.views.tensor:TensorPanel",
        "right",
        "Heat map of an owner's array: public, private, difference",
        "banks",
    ),
    PanelSpec(
        "logits",
        "Logits",
        "app.views.logits:LogitsPanel",
        "right",
        "The likeliest next tokens of the selected sequence",
        "banks",
    ),
    PanelSpec(
        "findings",
        "Findings",
        "app.views.findings:FindingsPanel",
        "bottom",
        "What is wrong with another engine's saved state",
        "journal",
    ),
)
