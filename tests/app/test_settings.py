"""Settings remember, survive nonsense, and write nothing when fresh."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings

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


def test_fresh_reads_defaults_and_writes_nothing() -> None:
    settings = Settings(fresh=True)
    settings.scheme = "dark"
    settings.add_recent("/x")
    settings.keep_layout(QByteArray(b"a"), QByteArray(b"b"))
    assert settings.scheme == "system"
    assert settings.recent == []
    assert settings.layout() is None


def test_nonsense_in_the_file_gives_defaults(tmp_path: Path) -> None:
    path = tmp_path / "s.ini"
    raw = QSettings(str(path), QSettings.Format.IniFormat)
    for key in ("look/scheme", "look/text_size", "engine/chunk", "engine/backend"):
        raw.setValue(key, "; drop table")
    raw.setValue("layout/version", LAYOUT_VERSION)
    raw.setValue("layout/geometry", "no bytes")
    raw.sync()
    settings = Settings(path=path)
    assert (settings.scheme, settings.text_size, settings.chunk) == ("system", 100, 5)
    assert settings.backend == "auto"
    assert settings.layout() is None


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
