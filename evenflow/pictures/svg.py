"""Pictures as SVG text, for notebooks and files, without a library.

Invariant: no text of a job becomes markup. Words have the reader's colour (`currentColor`), and the other colours are visible on light
and on dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

BLUE, ORANGE, RED, GREY = "#4c8bc9", "#d9822b", "#c9504c", "#8a8a8a"


class Picture:
    """A picture that a notebook shows; `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file, for a browser or a report."""
        Path(path).write_text(self.svg, encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        return f"<Picture, {len(self.svg):,} characters of SVG: save(path) writes it>"


def document(width: float, height: float, parts: Iterable[str]) -> Picture:
    """Join the parts to one picture, at most as wide as its container."""
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" style="max-width: 100%" '
        'font-family="sans-serif" font-size="12" fill="none" stroke="none">'
    )
    return Picture("\n".join([opening, *parts, "</svg>"]))


def text(x: float, y: float, words: object, *, anchor: str = "start", color: str = "currentColor", weight: str = "normal") -> str:
    """Draw words that start, end or are centred at a position."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}">{escape(str(words))}</text>'


def line(points: Iterable[tuple[float, float]], color: str, width: float = 1.5, dash: str = "") -> str:
    """Draw a line through points."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{places}" stroke="{color}" stroke-width="{width:g}"{dashes}/>'


def box(x: float, y: float, width: float, height: float, color: str, radius: float = 4) -> str:
    """Draw a frame with round corners."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" stroke="{color}" stroke-width="1.5"/>'
