"""The pages of the Help menu say what the window shows."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QTextBrowser

from app.models.banks import STATE_GLYPHS
from app.models.sequences import SEGMENT_KINDS, WORD_OF
from app.views.main_window import MainWindow
from app.views.window_help import Page


@pytest.fixture
def words(qtbot, settings) -> str:
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.show()
    window.show_glossary()
    (page,) = window.findChildren(Page)
    return page.findChild(QTextBrowser).toPlainText()


def test_every_kind_of_position_is_in_the_glossary(words: str) -> None:
    lines = words.splitlines()
    for kind in SEGMENT_KINDS:
        assert WORD_OF[kind] in lines
    assert "attention never sees them" in words


def test_what_the_banks_panel_says_of_owners_is_in_the_glossary(words: str) -> None:
    for word in {"stale", "sealed"} & set(STATE_GLYPHS) | {"unsealed"}:
        assert word in words
