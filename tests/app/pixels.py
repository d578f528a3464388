"""Pictures as arrays, and what colour a region mostly has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from app import theme

Pixels = npt.NDArray[np.uint32]


def grab(widget: QWidget) -> Pixels:
    """[rows, columns] 0x00RRGGBB in device pixels."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    raw = np.frombuffer(image.constBits(), np.uint32, image.bytesPerLine() // 4 * image.height())
    table = raw.reshape(image.height(), image.bytesPerLine() // 4)[:, : image.width()]
    return table.copy() & 0xFFFFFF


def share(pixels: Pixels, role: str) -> float:
    """Share of pixels that have exactly the colour of a role."""
    return float(np.mean(pixels == theme.rgb(role) & 0xFFFFFF))


def most(pixels: Pixels) -> int:
    """The most frequent colour."""
    values, counts = np.unique(pixels, return_counts=True)
    return int(values[np.argmax(counts)])


def is_mostly(pixels: Pixels, role: str) -> bool:
    """True where a role's colour is the most frequent one."""
    return most(pixels) == theme.rgb(role) & 0xFFFFFF
