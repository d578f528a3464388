"""Colours: contrasts and distances computed anew, after WCAG 2 and OKLab with vision matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from app import resources, theme

SCHEMES = ("light", "dark", "contrast")
FILLS = ("group_a", "group_b", "hole", "padding", "evicted", "forgotten", "public", "private")
FILLS += ("done", "running", "pending", "failed")
RUN = ("group_a", "group_b", "tail", "hole", "padding", "evicted", "forgotten")
BANKS = ("public", "private")
STAGES = ("done", "running", "pending", "failed")

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB
VISION = {
    "normal": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted((linear(one) @ weights, linear(other) @ weights))
    return float((high + 0.05) / (low + 0.05))


def oklab(rgb: np.ndarray) -> np.ndarray:
    lms = np.cbrt(
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ np.clip(rgb, 0, 1)
    )
    return (
        np.array(
            [
                [0.2104542553, 0.7936177850, -0.0040720468],
                [1.9779984951, -2.4285922050, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.8086757660],
            ]
        )
        @ lms
    )


def distance(one: str, other: str) -> float:
    """Smallest OKLab distance x 100 over all kinds of vision."""
    return min(
        100 * float(np.linalg.norm(oklab(m @ linear(one)) - oklab(m @ linear(other))))
        for m in VISION.values()
    )


@pytest.mark.parametrize("name", SCHEMES)
def test_texts_can_be_read(name: str) -> None:
    colours = theme.load(name).colours
    for role in ("text", "text2", "accent", "warning"):
        for ground in ("base", "window", "alternate"):
            assert contrast(colours[role], colours[ground]) >= 4.5, (role, ground)


@pytest.mark.parametrize("name", SCHEMES)
def test_fills_stand_out_from_the_base(name: str) -> None:
    colours = theme.load(name).colours
    least = 4.5 if name == "contrast" else 3.0
    weak = {role: contrast(colours[role], colours["base"]) for role in FILLS}
    if name == "contrast":
        weak = {role: value for role, value in weak.items() if role in ("padding", "pending")}
    assert {role: value for role, value in weak.items() if value < least} == {}
    # the light tail is weaker and therefore outlined, which the picture test of the map checks
    assert contrast(colours["tail"], colours["base"]) >= 2.3


@pytest.mark.parametrize("name", SCHEMES)
def test_forgotten_stays_apart_from_the_colour_of_every_other_kind(name: str) -> None:
    colours = theme.load(name).colours
    others = [role for role in (*RUN, "group_mix") if role != "forgotten"]
    near = {role: distance(colours["forgotten"], colours[role]) for role in others}
    assert min(near.values()) >= 10, min(near, key=near.__getitem__)


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("roles", [RUN, BANKS, STAGES])
def test_colours_that_share_a_view_stay_apart_for_every_vision(name: str, roles) -> None:
    colours = theme.load(name).colours
    near = {
        pair: distance(colours[pair[0]], colours[pair[1]])
        for pair in itertools.combinations(roles, 2)
    }
    assert min(near.values()) >= 10, min(near, key=near.__getitem__)


@pytest.mark.parametrize("name", SCHEMES)
def test_text_on_a_fill_is_the_better_of_black_and_white(qapp: QApplication, name: str) -> None:
    theme.apply(qapp, name)
    for role in (*FILLS, "tail", "accent"):
        ground, ink = theme.load(name).colours[role], theme.text_on(role).name()
        other = "#000000" if ink == "#ffffff" else "#ffffff"
        assert contrast(ground, ink) >= max(4.5, contrast(ground, other))


@pytest.mark.parametrize("name", SCHEMES)
def test_the_palette_has_readable_disabled_text(qapp: QApplication, name: str) -> None:
    theme.apply(qapp, name)
    palette = qapp.palette()
    faint = palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText).name()
    assert contrast(faint, palette.color(QPalette.ColorRole.Window).name()) >= 3.0
    chosen = palette.color(QPalette.ColorRole.HighlightedText).name()
    assert contrast(chosen, palette.color(QPalette.ColorRole.Highlight).name()) >= 4.5


def test_contrast_of_the_module_agrees_with_this_one() -> None:
    assert theme.contrast(QColor("#0F3F9E"), QColor("#FFFFFF")) == pytest.approx(
        contrast("#0F3F9E", "#FFFFFF"), rel=1e-4
    )
    assert theme.contrast(QColor("#000000"), QColor("#FFFFFF")) == pytest.approx(21, rel=1e-4)


def test_every_icon_draws_something_in_the_colour_of_the_theme(qapp: QApplication) -> None:
    names = sorted(p.stem for p in resources.ICONS.glob("*.svg") if p.stem != "bankflip")
    assert len(names) > 30
    for scheme in ("light", "dark"):
        theme.apply(qapp, scheme)
        ink = theme.colour("text")
        for name in names:
            image = theme.icon(name).pixmap(20, 20).toImage()
            solid = [
                image.pixelColor(x, y)
                for x in range(20)
                for y in range(20)
                if image.pixelColor(x, y).alpha() == 255
            ]
            assert solid, name
            assert any(abs(c.red() - ink.red()) < 12 for c in solid), (scheme, name)


def test_unknown_names_are_errors(qapp: QApplication) -> None:
    with pytest.raises(ValueError, match="expected a scheme"):
        theme.apply(qapp, "pink")
    with pytest.raises(KeyError):
        theme.colour("pink")
    with pytest.raises(FileNotFoundError, match="no icon named"):
        theme.icon("nothing")


def test_text_size_scales_and_never_goes_under_nine_points(qapp: QApplication) -> None:
    try:
        theme.set_text_size(qapp, 150)
        large = qapp.font().pointSizeF()
        assert theme.row_height() == 33
        theme.set_text_size(qapp, 90)
        assert qapp.font().pointSizeF() >= 9
        assert large >= 1.4 * qapp.font().pointSizeF()
    finally:
        theme.set_text_size(qapp, 100)
