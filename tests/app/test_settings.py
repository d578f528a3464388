"""Settings remember, survive nonsense, and write nothing when fresh."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QSettings

from app.models.preferences import Preferences, differences
from app.settings import LAYOUT_VERSION, MOST_RECENT, Settings


def test_choices_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "s.ini"
    one = Settings(path=path)
    one.scheme, one.text_size, one.chunk, one.backend = "dark", 125, 9, "cpu"
    one.reduced_motion = True
    one.sync()
    two = Settings(path=path)
    found = (two.scheme, two.text_size, two.chunk, two.backend, two.reduced_motion)
    assert found == ("dark", 125, 9, "cpu", True)


def test_fresh_starts_from_defaults_keeps_choices_for_the_run_and_writes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.ini"
    usual = Settings(path=path)
    usual.scheme, usual.chunk, usual.tour = "dark", 9, "finished"
    usual.sync()
    before = path.read_bytes()
    settings = Settings(fresh=True, path=path)
    assert settings.preferences() == Preferences()
    assert settings.tour == ""
    settings.scheme, settings.chunk, settings.budget_bytes = "light", 7, 2**30
    settings.add_recent("/x")
    settings.keep_layout(QByteArray(b"a"), QByteArray(b"b"))
    settings.sync()
    assert (settings.scheme, settings.chunk, settings.budget_bytes) == ("light", 7, 2**30)
    assert settings.layout() is None
    assert path.read_bytes() == before
    assert Settings(fresh=True, path=path).chunk == 5


def test_every_preference_comes_back_at_the_next_start(tmp_path: Path) -> None:
    wanted = Preferences("contrast", True, True, 125, 17, "cpu", "fast", 512 * 2**20)
    assert set(differences(Preferences(), wanted)) == {f.name for f in fields(Preferences)}
    one = Settings(path=tmp_path / "s.ini")
    for name, value in differences(Preferences(), wanted).items():
        setattr(one, name, value)
    one.sync()
    assert Settings(path=tmp_path / "s.ini").preferences() == wanted
    one.budget_bytes = None
    one.sync()
    assert Settings(path=tmp_path / "s.ini").budget_bytes is None


def test_nonsense_in_the_file_gives_defaults(tmp_path: Path) -> None:
    path = tmp_path / "s.ini"
    raw = QSettings(str(path), QSettings.Format.IniFormat)
    keys = ("look/scheme", "look/text_size", "look/patterns", "engine/chunk", "engine/backend")
    keys += ("engine/mode", "engine/budget_bytes", "help/tour")
    for key in keys:
        raw.setValue(key, "; drop table")
    raw.setValue("layout/version", LAYOUT_VERSION)
    raw.setValue("layout/geometry", "no bytes")
    raw.sync()
    settings = Settings(path=path)
    assert (settings.scheme, settings.text_size, settings.chunk) == ("system", 100, 5)
    assert settings.preferences() == Preferences()
    assert settings.tour == ""
    assert settings.layout() is None


@pytest.mark.parametrize("value", ["²", "-5", "", " ", "1.5", "9" * 5000, "1e3", "0x10"])
def test_what_is_no_number_gives_the_default(tmp_path: Path, value: str) -> None:
    path = tmp_path / "s.ini"
    raw = QSettings(str(path), QSettings.Format.IniFormat)
    for key in ("look/text_size", "engine/chunk", "engine/budget_bytes"):
        raw.setValue(key, value)
    raw.sync()
    assert Settings(path=path).preferences() == Preferences()


def test_names_that_the_settings_cannot_hold_are_not_remembered(tmp_path: Path) -> None:
    settings = Settings(path=tmp_path / "s.ini")
    for name in ("new\nline", "odd\udcff", "plain"):
        settings.add_recent(str(tmp_path / name))
    assert settings.recent == [str(tmp_path / "plain")]


def test_recent_files_are_ten_newest_first_without_repeats(tmp_path: Path) -> None:
    settings = Settings(path=tmp_path / "s.ini")
    for n in range(MOST_RECENT + 3):
        settings.add_recent(str(tmp_path / f"f{n}"))
    settings.add_recent(str(tmp_path / "f5"))
    assert len(settings.recent) == MOST_RECENT
    assert settings.recent[0] == str(tmp_path / "f5")
    assert len(set(settings.recent)) == MOST_RECENT
    settings.clear_recent()
    assert settings.recent == []


def test_a_layout_of_another_version_is_not_used(tmp_path: Path) -> None:
    settings = Settings(path=tmp_path / "s.ini")
    settings.keep_layout(QByteArray(b"geometry"), QByteArray(b"state"))
    kept = settings.layout()
    assert kept is not None
    assert kept[1].data() == b"state"
    raw = QSettings(str(tmp_path / "s.ini"), QSettings.Format.IniFormat)
    raw.setValue("layout/version", LAYOUT_VERSION + 1)
    raw.sync()
    assert Settings(path=tmp_path / "s.ini").layout() is None
