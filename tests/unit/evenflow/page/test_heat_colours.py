"""The heat map's hues, one for each version of the code, differ for colour-blind eyes too, at any load, light and dark."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from evenflow.page.server import STATIC

EYES = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Projections of linear RGB to the colours that eyes see, at full severity: Machado, Oliveira and Fernandes, "A Physiologically-based
Model for Simulation of Color Vision Deficiency", IEEE TVCG 15(6), 2009.
"""
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
WHITE = np.array([0.95047, 1.0, 1.08883])

DISTINCT = 9.0
"""The least distance in CIELAB, where 2.3 is just noticeable."""


def ramps(name):
    """Return the 256 shades of each hue in `palettes.js` as linear RGB, shape (hues, 256, 3)."""
    listed = re.search(rf"const {name} = \[\n(.*?)\n\];", (STATIC / "palettes.js").read_text(), re.DOTALL)[1]
    found = []
    for line in listed.splitlines():
        stops = np.array([[int(word[at : at + 2], 16) for at in (0, 2, 4)] for word in re.findall(r"#(\w{6})", line)]) / 255
        places = np.linspace(0, len(stops) - 1, 256)
        shades = np.stack([np.interp(places, np.arange(len(stops)), stops[:, colour]) for colour in range(3)], axis=1)
        found.append(np.where(shades <= 0.04045, shades / 12.92, ((shades + 0.055) / 1.055) ** 2.4))
    return np.array(found)


def lab(shades):
    """Convert linear RGB to CIELAB."""
    parts = shades @ TO_XYZ.T / WHITE
    root = np.where(parts > 0.008856, np.cbrt(parts), 7.787 * parts + 16 / 116)
    x, y, z = (root[..., place] for place in range(3))
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@pytest.mark.parametrize("name", ["LIGHT", "DARK"])
@pytest.mark.parametrize("eye", EYES)
def test_hues_of_two_versions_differ_at_every_load(name, eye):
    seen = [lab(np.clip(ramp @ np.array(EYES[eye]).T, 0, 1)) for ramp in ramps(name)]
    assert len(seen) == 3
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(one - other, axis=1).min() > DISTINCT


@pytest.mark.parametrize(("name", "rising"), [("LIGHT", -1), ("DARK", 1)])
def test_more_load_is_darker_on_a_light_page_and_lighter_on_a_dark_one(name, rising):
    for ramp in ramps(name):
        assert (rising * np.diff(lab(ramp)[:, 0]) >= 0).all()
