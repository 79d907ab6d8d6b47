"""The colours of the page, out of its style sheet: enough contrast for text, and bounds that stay apart for every common colour blindness.

Colour never stands alone (each bound has a word and a shape); this is about telling the chart's points and bars apart at a glance.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

CSS = (Path(__file__).resolve().parents[2] / "site" / "css" / "page.css").read_text("utf-8")
BOUNDS = ("memory", "compute", "network", "misfit")
# Machado, Oliveira and Fernandes (2009), full severity, on linear RGB.
SIGHT = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def palette(theme: str) -> dict:
    blocks = re.findall(r":root(?:\[data-theme=\"dark\"\])? \{(.*?)\}", CSS, re.S)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", next(b for b in blocks if ("color-scheme: dark" in b) == (theme == "dark") and "--memory" in b)))


def linear(colour: str) -> tuple:
    values = (int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)


def contrast(a: str, b: str) -> float:
    """WCAG 2: (L1 + 0.05) / (L2 + 0.05)."""
    light, dark = sorted((sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear(c), strict=True)) for c in (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def seen(colour: str, sight: str) -> tuple:
    """A colour in OKLab (Ottosson, 2020) as an eye of that kind sees it."""
    rgb = [min(1, max(0, sum(m * v for m, v in zip(row, linear(colour), strict=True)))) for row in SIGHT[sight]]
    cone = [sum(m * v for m, v in zip(row, rgb, strict=True)) ** (1 / 3) for row in ((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566), (0.0883024619, 0.2817188376, 0.6299787005))]
    return tuple(sum(m * v for m, v in zip(row, cone, strict=True)) for row in ((0.2104542553, 0.7936177850, -0.0040720468), (1.9779984951, -2.4285922050, 0.4505937099), (0.0259040371, 0.7827717662, -0.8086757660)))


def apart(a: str, b: str, sight: str) -> float:
    """Distance in OKLab; 0.02 is just noticeable, black and white are 1 apart."""
    return sum((x - y) ** 2 for x, y in zip(seen(a, sight), seen(b, sight), strict=True)) ** 0.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_have_contrast(theme):
    colours = palette(theme)
    for ground in ("paper", "wash"):
        for name in ("ink", "soft", "muted", "accent", "good", *BOUNDS, "host"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    assert contrast(colours["accent-ink"], colours["accent"]) >= 4.5
    assert contrast(colours["line"], colours["paper"]) >= 3  # the edge of a field


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bounds_stay_apart(theme, sight):
    colours = palette(theme)
    for a, b in combinations(("memory", "compute", "network"), 2):
        assert apart(colours[a], colours[b], sight) >= 0.08, (a, b, sight)
    for a in ("memory", "compute", "network"):  # what does not fit is never on the chart beside them, but in the same table
        assert apart(colours[a], colours["misfit"], sight) >= 0.06, (a, sight)


def test_the_distance_knows_black_white_and_the_confused():
    assert abs(apart("#000000", "#ffffff", "full") - 1) < 1e-3
    assert apart("#d04040", "#7a7a20", "deuteranopia") < apart("#d04040", "#7a7a20", "full")
