"""Text from outside as a terminal may show it."""

from __future__ import annotations

import pytest

from engine.errors import Unreadable
from engine.printable import plain


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model.layers.0", "model.layers.0"),
        ("Zeichen: ä – 中文 ✓ …", "Zeichen: ä – 中文 ✓ …"),
        ("a\u00a0b", "a\u00a0b"),
        ("\x1b[2J\x1b]0;owned\x07", r"\x1b[2J\x1b]0;owned\x07"),
        ("a\nb\rc\td\u2028e\x85f", r"a\nb\rc\td\u2028e\x85f"),
        ("\x9b1m", r"\x9b1m"),
        ("right\u202eleft", r"right\u202eleft"),
        ("odd\udcff\ud800", r"odd\udcff\ud800"),
    ],
)
def test_what_is_no_visible_sign_is_spelt_out(text: str, told: str) -> None:
    assert plain(text) == told
    told.encode()


def test_a_sentence_about_a_file_is_one_plain_line_of_bounded_length() -> None:
    bad = "\x1b[2J" + "x\n\u2028" * 3
    told = str(Unreadable(bad, bad, bad, bad, 7))
    assert told.count("\\x1b[2J") == 4
    assert len(told.splitlines()) == 1
    assert told.isprintable()
    assert len(str(Unreadable("f", "n" * 10**6, "n" * 10**6, "n" * 10**6))) < 4000
