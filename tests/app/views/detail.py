"""Where a position stands in a run's detail view; the view is the fixture `detail`."""

from __future__ import annotations

from app.views.run_detail import RunDetail


def middle(detail: RunDetail, position: int) -> int:
    """Pixel of the middle of a position."""
    return int(detail.axis.to_pixel(position + 0.5))
