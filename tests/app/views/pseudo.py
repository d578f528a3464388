"""A pseudo locale with every text 40 % longer, and what of a widget's text is then cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QTranslator
from PySide6.QtWidgets import QAbstractButton, QLabel, QToolButton, QWidget


def longer(text: str) -> str:
    """The text with words behind it, 40 % more in all."""
    return text + " " + ("word " * len(text))[: max(1, round(len(text) * 0.4) - 1)]


class Pseudo(QTranslator):
    """Translates everything."""

    def isEmpty(self) -> bool:
        return False

    def translate(self, context, text, hint=None, n=-1) -> str:
        return longer(text)


@pytest.fixture
def pseudo_locale(qapp) -> Iterator[Callable[[str], str]]:
    """Every text that is translated from now on is longer; gives the function."""
    translator = Pseudo()
    qapp.installTranslator(translator)
    yield longer
    qapp.removeTranslator(translator)


def cut_off(root: QWidget) -> list[str]:
    """Labels and buttons under `root` that have less room than their text needs."""
    found = []
    for widget in root.findChildren(QWidget):
        if not widget.isVisible():
            continue
        if isinstance(widget, QLabel) and widget.text():
            needed = widget.heightForWidth(widget.width()) if widget.wordWrap() else 0
            wide = 0 if widget.wordWrap() else widget.sizeHint().width()
        elif isinstance(widget, QAbstractButton) and not isinstance(widget, QToolButton):
            needed, wide = 0, widget.sizeHint().width()
        else:
            continue
        if widget.height() < needed or widget.width() < wide:
            found.append(f"{type(widget).__name__} {widget.text()!r} {widget.size()}")
    return found
