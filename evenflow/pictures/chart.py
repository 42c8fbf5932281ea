"""Draws the last minutes of a job: rate, latency and busy workers over time, with a mark at each decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..engine.protocol.ids import WorkerId, code_of, index_of
from ..terminal.units import short_number
from .svg import BLUE, GREY, ORANGE, RED, Picture, document, line, text

WIDTH, HEIGHT, LEFT, TOP = 720.0, 90.0, 60.0, 26.0
COLORS = (BLUE, ORANGE, RED, "#5aa469", "#8e6bb8", "#b58b3c")

Points = Sequence[tuple[float, float]]


def job_chart(message: Mapping[str, Any], operator: str | None = None) -> Picture:
    """Draw a job's whole history. `operator`: the one whose workers are shown, None for the first with keyed state."""
    seconds = [second for second in message["seconds"] if second["t"] <= message["until"]]
    first, last = (seconds[0]["t"], max(seconds[-1]["t"], seconds[0]["t"] + 1)) if seconds else (0, 1)
    operator = operator if operator is not None else next(iter(message["loads"]), None)
    busy: dict[WorkerId, list[tuple[float, float]]] = {}
    for second in seconds:
        for worker, useful in second["stages"].get(operator, {}).get("workers", {}).items():
            busy.setdefault(worker, []).append((second["t"], useful))
    latencies = {name: [(s["t"], s[name]) for s in seconds if s[name] is not None] for name in ("p50", "p99")}
    charts: list[tuple[str, dict[str, Points]]] = [
        ("records/s read", {"": [(second["t"], second["rate"]) for second in seconds]}),
        ("latency, ms", {name: points for name, points in latencies.items() if points}),
    ]
    if busy:
        charts.append((f"useful share of the workers of {operator}", {worker: busy[worker] for worker in sorted(busy, key=_place)}))
    marks = [entry for entry in message["decisions"] if entry["answer"] == "yes" and first <= entry["begin"] <= last]
    parts = [text(LEFT, 14, message["job"], weight="bold")]
    for place, (title, lines) in enumerate(charts):
        parts += _chart(title, lines, (first, last), marks, TOP + place * (HEIGHT + 34))
    bottom = TOP + len(charts) * (HEIGHT + 34)
    for place, entry in enumerate(marks[-4:]):
        parts.append(text(LEFT, bottom + 14 * place, f"{entry['begin'] - last:+.0f} s {entry['who']}: {entry['what']}", color=GREY))
    return document(WIDTH, bottom + 14 * min(len(marks), 4), parts)


def _chart(title: str, lines: Mapping[str, Points], span: tuple[float, float], marks: Sequence[Mapping[str, Any]], top: float) -> list[str]:
    (first, last), bottom = span, top + 18 + HEIGHT
    most = max((value for points in lines.values() for _, value in points), default=0.0) or 1.0

    def x(at: float) -> float:
        return LEFT + (at - first) / (last - first) * (WIDTH - LEFT - 10)

    def y(value: float) -> float:
        return bottom - value / most * HEIGHT

    parts = [text(LEFT, top + 12, title), text(LEFT - 6, top + 24, _number(most), anchor="end", color=GREY)]
    parts += [text(LEFT - 6, bottom, "0", anchor="end", color=GREY), line([(LEFT, bottom), (WIDTH - 10, bottom)], GREY, 1)]
    parts += [line([(x(mark["begin"]), top + 18), (x(mark["begin"]), bottom)], GREY, 1, dash="3 3") for mark in marks]
    legend = LEFT + 8 * len(title) + 20
    for color, (name, points) in zip(COLORS * (len(lines) // len(COLORS) + 1), lines.items(), strict=False):
        parts.append(line([(x(at), y(value)) for at, value in points], color))
        if name and legend < WIDTH - 60:
            parts.append(text(legend, top + 12, name, color=color))
            legend += 8 * len(name) + 14
    return parts


def _place(worker: WorkerId) -> tuple[int, int]:
    return index_of(worker), code_of(worker)


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else short_number(value)
