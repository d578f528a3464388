"""Colours, fonts and the palette by role name; the values are in `resources/themes/*.toml`.

Views ask `colour("hole")` while they paint, so a theme change is one `apply` and the
`PaletteChange` that Qt sends after it. Knows no widget.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QGuiApplication,
    QIcon,
    QImage,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtWidgets import QApplication, QStyle, QStyleFactory

from app import resources

SCHEMES = ("system", "light", "dark", "contrast")
ROLES = (
    "group_a",
    "group_b",
    "group_mix",
    "tail",
    "hole",
    "padding",
    "evicted",
    "forgotten",
    "public",
    "private",
    "done",
    "running",
    "pending",
    "failed",
    "window",
    "base",
    "alternate",
    "line",
    "text",
    "text2",
    "accent",
    "warning",
)
TEXT_SIZES = (90, 100, 110, 125, 150)
"""Percent of the system's size that View > Text size offers."""

SMALLEST_POINTS = 9.0


@dataclass(frozen=True, slots=True)
class Theme:
    """One colour scheme."""

    name: str
    title: str
    dark: bool
    patterns_always: bool
    colours: dict[str, str]


@cache
def load(name: str) -> Theme:
    """The theme `light`, `dark` or `contrast` from its file."""
    with resources.theme_path(name).open("rb") as file:
        data = tomllib.load(file)
    colours = {role: str(data["colours"][role]) for role in ROLES}
    return Theme(name, data["title"], bool(data["dark"]), bool(data["patterns_always"]), colours)


class _Current:
    """What is applied now; one a process, as the palette of Qt is."""

    theme: Theme | None = None
    scheme = "system"
    system_points = 0.0
    percent = 100
    reduced_motion = False
    patterns = False


def current() -> Theme:
    """The theme in use (light before any `apply`)."""
    return _Current.theme or load("light")


def colour(role: str) -> QColor:
    """The colour of a role in the theme in use; KeyError names an unknown role."""
    return QColor(current().colours[role])


def rgb(role: str) -> int:
    """The same as 0xAARRGGBB with full alpha, for arrays of pixels."""
    return 0xFF000000 | int(current().colours[role][1:], 16)


def luminance(value: QColor) -> float:
    """Relative luminance after WCAG 2, 0 to 1."""

    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)

    red, green, blue = (linear(c) for c in (value.redF(), value.greenF(), value.blueF()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: QColor, other: QColor) -> float:
    """Contrast ratio after WCAG 2, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def text_on(role: str) -> QColor:
    """White or black, whichever is better to read on the role's colour."""
    fill = colour(role)
    white, black = QColor("#FFFFFF"), QColor("#000000")
    return white if contrast(fill, white) >= contrast(fill, black) else black


def mono() -> QFont:
    """The fixed-width font at the size of the interface font: numbers, digests, offsets."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    size = QGuiApplication.font().pointSizeF()
    if size > 0:
        font.setPointSizeF(size)
    return font


def heading() -> QFont:
    """Same size as the text, bold."""
    font = QGuiApplication.font()
    font.setBold(True)
    return font


def _mix(one: QColor, other: QColor, share: float) -> QColor:
    """`share` of `other` in `one`, channel by channel."""
    return QColor.fromRgbF(
        one.redF() + (other.redF() - one.redF()) * share,
        one.greenF() + (other.greenF() - one.greenF()) * share,
        one.blueF() + (other.blueF() - one.blueF()) * share,
    )


def palette(theme: Theme) -> QPalette:
    """The Qt palette of a theme (Fusion draws everything from it)."""
    c = {role: QColor(value) for role, value in theme.colours.items()}
    role = QPalette.ColorRole
    result = QPalette()
    table = {
        role.Window: c["window"],
        role.WindowText: c["text"],
        role.Base: c["base"],
        role.AlternateBase: c["alternate"],
        role.Text: c["text"],
        role.Button: _mix(c["window"], c["base"], 0.5) if not theme.dark else c["window"],
        role.ButtonText: c["text"],
        role.BrightText: c["failed"],
        role.Highlight: c["accent"],
        role.HighlightedText: QColor("#000000" if theme.dark else "#FFFFFF"),
        role.Link: c["accent"],
        role.LinkVisited: c["private"],
        role.ToolTipBase: c["base"],
        role.ToolTipText: c["text"],
        role.PlaceholderText: c["text2"],
        role.Light: _mix(c["window"], QColor("#FFFFFF"), 0.12 if theme.dark else 0.8),
        role.Midlight: _mix(c["window"], QColor("#FFFFFF"), 0.06 if theme.dark else 0.5),
        role.Mid: c["line"],
        role.Dark: _mix(c["line"], QColor("#000000"), 0.25),
        role.Shadow: QColor("#000000"),
        role.Accent: c["accent"],
    }
    for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
        for key, value in table.items():
            result.setColor(group, key, value)
    faint = _mix(c["text2"], c["window"], 0.25)
    for key, value in table.items():
        is_text = key in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText)
        result.setColor(QPalette.ColorGroup.Disabled, key, faint if is_text else value)
    result.setColor(QPalette.ColorGroup.Disabled, role.Highlight, c["line"])
    return result


def system_scheme() -> str:
    """`dark`, `light` or `contrast` as the desktop asks; light where it says nothing."""
    hints = QGuiApplication.styleHints()
    if hasattr(hints, "accessibility"):  # Qt 6.10
        preference = hints.accessibility().contrastPreference()
        if preference == Qt.ContrastPreference.HighContrast:
            return "contrast"
    return "dark" if hints.colorScheme() == Qt.ColorScheme.Dark else "light"


def apply(app: QApplication, scheme: str) -> Theme:
    """Make `scheme` (one of `SCHEMES`) the look of the application; widgets repaint by themselves.

    Fusion and an own palette, since `QStyleHints.setColorScheme` has no effect where there is
    no desktop theme.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"expected a scheme of {', '.join(SCHEMES)}, given {scheme!r}")
    theme = load(system_scheme() if scheme == "system" else scheme)
    _Current.theme, _Current.scheme = theme, scheme
    if app.style().name().lower() != "fusion":
        app.setStyle(QStyleFactory.create("Fusion"))
    app.setPalette(palette(theme))
    _tinted.cache_clear()
    return theme


def scheme() -> str:
    """The scheme that was asked for, `system` included."""
    return _Current.scheme


def set_text_size(app: QApplication, percent: int) -> None:
    """Scale the interface font to `percent` of the system's size, never under 9 points."""
    if not _Current.system_points:
        _Current.system_points = app.font().pointSizeF()
    font = app.font()
    font.setPointSizeF(max(SMALLEST_POINTS, _Current.system_points * percent / 100))
    _Current.percent = percent
    app.setFont(font)


def nearest_size(percent: int) -> int:
    """The one of `TEXT_SIZES` that is nearest."""
    return min(TEXT_SIZES, key=lambda size: abs(size - percent))


def row_height() -> int:
    """Height of a table row in pixels: 22, more with large text."""
    return max(22, round(22 * _Current.percent / 100))


@cache
def _tinted(name: str, role: str, size: int, scale: float) -> QPixmap:
    """An icon's SVG drawn in one colour at `size` x `scale` device pixels."""
    from PySide6.QtSvg import QSvgRenderer

    svg = (
        resources.icon_path(name)
        .read_bytes()
        .replace(b"currentColor", colour(role).name().encode())
    )
    pixels = round(size * scale)
    image = QImage(QSize(pixels, pixels), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(svg)).render(painter)
    painter.end()
    result = QPixmap.fromImage(image)
    result.setDevicePixelRatio(scale)
    return result


def icon(name: str, role: str = "text") -> QIcon:
    """An own SVG icon in the theme's colour, at scales 1 and 2; greyed where disabled."""
    result = QIcon()
    for scale in (1.0, 2.0):
        for size in (16, 20):
            result.addPixmap(_tinted(name, role, size, scale), QIcon.Mode.Normal)
            result.addPixmap(_tinted(name, "pending", size, scale), QIcon.Mode.Disabled)
    return result


def set_patterns(on: bool) -> None:
    """The user's own wish; a theme may want them anyway."""
    _Current.patterns = on


def patterns_always() -> bool:
    """True where drawings use patterns even where colour and place would do."""
    return _Current.patterns or current().patterns_always


def set_reduced_motion(on: bool) -> None:
    """The user's own wish; the system's is respected beside it."""
    _Current.reduced_motion = on


def reduced_motion() -> bool:
    """True where nothing should flash: the user or the style of the system says so."""
    app = QApplication.instance()
    if _Current.reduced_motion or not isinstance(app, QApplication):
        return True
    return app.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0


def short_digest(digest: str) -> str:
    """First eight hex digits in two groups of four; a dash where there is none."""
    return f"{digest[:4]} {digest[4:8]}" if digest else "–"
