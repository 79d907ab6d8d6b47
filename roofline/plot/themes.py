"""The palettes of figures in files: one colour for each role, the same roles as on the page."""

from __future__ import annotations

from ..errors import InputError

_LIGHT = {
    "memory": "#a85a06",
    "compute": "#0a746f",
    "network": "#6b40c2",
    "host": "#a03768",
    "misfit": "#b01030",
    "plain": "#66727b",
    "ink": "#171d22",
    "muted": "#5a666f",
    "rule": "#dfe4e7",
    "line": "#8a969e",
    "paper": "#ffffff",
    # Series of a comparison, told apart by marker as well; dark enough for text on paper.
    "series0": "#1f5fbf",
    "series1": "#b3471b",
    "series2": "#2b7a3d",
    "series3": "#8a3fb0",
    "series4": "#a3195b",
    "series5": "#5c5f00",
}
_DARK = {
    "memory": "#f0ac48",
    "compute": "#4cc9bc",
    "network": "#b79dff",
    "host": "#f08cb8",
    "misfit": "#ff8a80",
    "plain": "#98a4ad",
    "ink": "#e9edf0",
    "muted": "#9aa6b0",
    "rule": "#2a333c",
    "line": "#6b7781",
    "paper": "#11161b",
    "series0": "#8ab6ff",
    "series1": "#ff9e70",
    "series2": "#7fd08f",
    "series3": "#d9a6f2",
    "series4": "#ff8fbc",
    "series5": "#d6d36a",
}
# For paper in black and white: hue is gone, so everything that matters is told apart by marker, dash and label.
_PRINT = {
    **dict.fromkeys(_LIGHT, "#000000"),
    "rule": "#dddddd",
    "line": "#888888",
    "muted": "#333333",
    "plain": "#555555",
    "paper": "#ffffff",
    "memory": "#000000",
    "compute": "#000000",
    "network": "#444444",
    "host": "#444444",
    "misfit": "#000000",
    **{f"series{i}": shade for i, shade in enumerate(("#000000", "#555555", "#222222", "#777777", "#333333", "#666666"))},
}
THEMES = {"light": _LIGHT, "dark": _DARK, "print": _PRINT}
SERIES = 6
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif'


def palette(theme: str) -> dict:
    """{role: colour} of a theme: "light", "dark" or "print".

    >>> palette("light")["paper"]
    '#ffffff'
    """
    if theme not in THEMES:
        raise InputError("theme", theme, f"must be one of {', '.join(THEMES)}")
    return THEMES[theme]
