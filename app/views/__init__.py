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
    """`centre`, `left`, `right` or `bottom`; docks of one area are tabbed in this order, except
    that `right` and `centre` stack."""
    tooltip: str
    tab: str = ""
    """Panels of one area with the same word share one stack of tabs."""


PANELS: tuple[PanelSpec, ...] = ()
