"""A window on the axis of positions: where it begins and how wide a position is. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

WIDEST = 64.0
"""Pixels a position at the closest zoom."""


@dataclass(slots=True)
class Axis:
    """Pan and zoom over [lo, hi), clamped so that the run can't leave the view."""

    lo: float = 0
    hi: float = 1
    x0: float = 0
    """Position at the left edge."""
    per_position: float = 16
    """Pixels a position."""
    width: float = 1
    """Pixels of the view."""

    @property
    def span(self) -> float:
        """Positions in view."""
        return self.width / self.per_position

    @property
    def x1(self) -> float:
        """Position at the right edge."""
        return self.x0 + self.span

    @property
    def narrowest(self) -> float:
        """Pixels a position when everything is in view."""
        return min(WIDEST, self.width / max(1.0, self.hi - self.lo))

    def clamp(self) -> None:
        """Bring zoom and place back inside their limits."""
        self.per_position = min(WIDEST, max(self.narrowest, self.per_position))
        self.x0 = max(self.lo, min(self.x0, self.hi - self.span))

    def to_pixel(self, position: float) -> float:
        """Pixel of the left edge of a position."""
        return (position - self.x0) * self.per_position

    def to_position(self, pixel: float) -> int:
        """Position under a pixel."""
        return int((self.x0 + pixel / self.per_position) // 1)

    def zoom(self, factor: float, at: float | None = None) -> None:
        """Zoom by a factor with the position at pixel `at` (None: the middle) staying there."""
        at = self.width / 2 if at is None else at
        fixed = self.x0 + at / self.per_position
        self.per_position *= factor
        self.per_position = min(WIDEST, max(self.narrowest, self.per_position))
        self.x0 = fixed - at / self.per_position
        self.clamp()

    def pan(self, pixels: float) -> None:
        """Move the view to the right by pixels."""
        self.x0 += pixels / self.per_position
        self.clamp()

    def fit(self, start: float, stop: float, margin: float = 0.0) -> None:
        """Show [start, stop) with a margin as a share of it."""
        length = max(1.0, stop - start)
        self.per_position = self.width / (length * (1 + 2 * margin))
        self.per_position = min(WIDEST, max(self.narrowest, self.per_position))
        self.x0 = (start + stop) / 2 - self.span / 2
        self.clamp()

    def follow(self, wish: float = 14.0, closest: float = 28.0) -> None:
        """Show the end of the axis at a readable zoom: everything where there is room for it."""
        self.per_position = min(closest, max(wish, self.narrowest))
        self.x0 = self.hi - self.span
        self.clamp()

    def reveal(self, start: float, stop: float) -> None:
        """Scroll only as far as needed to have [start, stop) in view."""
        if start < self.x0 or stop - start > self.span:
            self.x0 = start - self.span * 0.1
        elif stop > self.x1:
            self.x0 = stop - self.span * 0.9
        self.clamp()


def nice_step(pixels_per_unit: float, least_pixels: float) -> int:
    """Distance of ruler marks: 1, 2 or 5 times a power of ten, at least `least_pixels` apart."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if step * factor * pixels_per_unit >= least_pixels:
                return step * factor
        step *= 10
