"""Errors as one sentence."""

from __future__ import annotations

import errno
import os

import pytest

from app.cli.common import one_line
from engine.errors import Unreadable


def test_a_systems_error_names_the_file_first() -> None:
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "a/b.json")
    assert one_line(error) == "a/b.json: Permission denied"


@pytest.mark.parametrize("name", [b"odd\xff", "odd\udcff", "two\nlines"])
def test_any_name_of_a_file_fits_on_a_line(name: bytes | str) -> None:
    text = one_line(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name))
    assert text.endswith(": No space left on device")
    assert "\n" not in text
    text.encode()


def test_others_speak_for_themselves() -> None:
    assert one_line(OSError("cannot  be\nwritten")) == "cannot be written"
    assert one_line(Unreadable("x", "no such file")) == "x: no such file"
    assert one_line(ValueError()) == "ValueError"
