"""Creates docs/images/moving.svg, which moves: a key becomes hot at 100,000 rows a second, keys move, and the latency stays.

`make pictures` runs it: the job runs on Ray, two workers compute, and the picture is drawn from the views of the job, a frame a second.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import evenflow as ef
from evenflow.job import monitor_of
from evenflow.pictures.svg import BLUE, GREY, ORANGE, RED, document, line, text

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "moving.svg"
RATE, KEYS, OPERATOR = 104_000, 20_000, "totals"
HOT_AT, SECONDS = 24, 50
"""Seconds of the stream until every second row has the same key, and of the whole stream."""

SHOWN = 10
"""Seconds before the key becomes hot that are shown."""

WIDTH, HEIGHT = 760.0, 335.0
BARS, CHARTS = (30.0, 210.0), (300.0, 740.0)
"""The left and the right edge of the bars, and of the charts."""

LOADS, LATENCIES = (96.0, 206.0), (242.0, 312.0)
"""The top and the bottom of the bars and the upper chart, and of the lower one."""

PACE, REST = 0.5, 2.0
"""Seconds for which the picture shows a second of the job, and in which it rests at the end."""

COLORS = (BLUE, ORANGE)


def flow() -> ef.Dataflow:
    """Build the job: a running total per key, with some computation for each row."""

    def total(state: float | None, row: dict[str, Any]) -> tuple[float, None]:
        value = row["value"]
        for _ in range(40):
            value = math.sqrt(value * value + 1.0)
        return (state or 0.0) + value, None

    job = ef.Dataflow("moving")
    rows = job.read(ef.generate(rate=RATE, every="5ms", total=RATE * SECONDS, keys=KEYS)).parallelism(1, fixed=True)
    hot = (ef.col("seq") >= RATE * HOT_AT) & (ef.col("seq") % 2 == 0)
    skewed = rows.with_columns(key=ef.when(hot).then(ef.lit(7)).otherwise(ef.col("key")))
    skewed.key_by("key").stateful_map(total).named(OPERATOR).parallelism(2).write(ef.to_callback(lambda _: None, name="none"))
    return job


def followed() -> Mapping[str, Any]:
    """Run the job on Ray, and return the whole message of its page."""
    config = ef.JobConfig(parallelism=2, balance=ef.BalanceConfig(after="3s"))
    job = flow().run(config=config)
    monitor, message = monitor_of(job), dict[str, Any]()
    while not monitor.ended:
        with suppress(ef.JobError):  # the job is just ending
            message = monitor.poll().whole()
        time.sleep(1.0)
    job.wait()
    return message


def picture(message: Mapping[str, Any], hot_at: float, seconds: int = SECONDS) -> str:
    """Draw the seconds around `hot_at`, in seconds since the epoch: bars and lines of the two workers' loads, the p99, and the moves."""
    shown = [second for second in message["seconds"] if hot_at - SHOWN <= second["t"] < hot_at - SHOWN + seconds]
    shown = [second for second in shown if len(second["stages"].get(OPERATOR, {}).get("workers", {})) == len(COLORS)]
    workers = sorted(shown[0]["stages"][OPERATOR]["workers"])
    loads = {worker: [second["stages"][OPERATOR]["workers"].get(worker, 0.0) for second in shown] for worker in workers}
    moves = [entry for entry in message["decisions"] if entry["stage"] == OPERATOR and entry["answer"] == "yes"]
    moves = [entry for entry in moves if shown[0]["t"] <= entry["begin"] <= shown[-1]["t"]]
    span = (float(shown[0]["t"]), float(shown[-1]["t"]))
    rate = sum(second["rate"] for second in shown) / len(shown)
    parts = [f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" rx="6" fill="#ffffff"/>']
    parts.append(
        text(20, 26, f"{round(rate, -3):,.0f} rows/s through two workers: a key becomes hot, and keys move", color="#333333", weight="bold")
    )
    parts += _bars(loads)
    parts += _chart(
        "busy share of each worker", [(color, values) for color, values in zip(COLORS, loads.values(), strict=True)], LOADS, 1.0, "100 %"
    )
    p99 = [second["p99"] for second in shown]
    most = max(50.0, *(value for value in p99 if value is not None))
    parts += _chart("p99 latency", [(RED, p99)], LATENCIES, most, f"{most:.0f} ms")
    parts += _marks([(hot_at, "a key becomes hot"), *((entry["begin"], entry["what"].partition(" (")[0]) for entry in moves[:2])], span)
    parts += _cursor(len(shown))
    return document(WIDTH, HEIGHT, parts).svg


def _bars(loads: Mapping[str, Sequence[float]]) -> Iterable[str]:
    (left, right), (top, bottom) = BARS, LOADS
    width = (right - left) / len(loads) - 20
    for place, (color, (worker, values)) in enumerate(zip(COLORS, loads.items(), strict=True)):
        x, heights = left + place * (width + 20), [max(1.0, min(value, 1.0) * (bottom - top)) for value in values]
        yield f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{bottom - top:g}" fill="#f0f0f0"/>'
        yield (
            f'<rect x="{x:g}" y="{bottom - heights[0]:.1f}" width="{width:g}" height="{heights[0]:.1f}" fill="{color}">'
            f"{_animated('y', [bottom - height for height in heights])}{_animated('height', heights)}</rect>"
        )
        yield text(x + width / 2, bottom + 16, worker, anchor="middle", color="#333333")


def _chart(
    title: str, lines: Sequence[tuple[str, Sequence[float | None]]], rows: tuple[float, float], most: float, label: str
) -> Iterable[str]:
    (left, right), (top, bottom) = CHARTS, rows
    yield text(left, top - 8, title, color="#333333")
    yield text(left - 6, top + 8, label, anchor="end", color=GREY)
    yield line([(left, bottom), (right, bottom)], GREY, 1)
    for color, values in lines:
        step = (right - left) / max(len(values) - 1, 1)
        points = [
            (left + at * step, bottom - min(value / most, 1.0) * (bottom - top)) for at, value in enumerate(values) if value is not None
        ]
        yield line(points, color, 2)


def _marks(marks: Sequence[tuple[float, str]], span: tuple[float, float]) -> Iterable[str]:
    left, right = CHARTS
    for place, (at, words) in enumerate(marks):
        x = left + (at - span[0]) / max(span[1] - span[0], 1.0) * (right - left)
        yield line([(x, LOADS[0]), (x, LATENCIES[1])], GREY, 1, dash="3 3")
        yield text(min(x + 4, right - 6.4 * len(words)), 46 + 13 * (place % 2), words, color=GREY)


def _cursor(frames: int) -> Iterable[str]:
    """Draw a white curtain over the future of the charts, which opens from left to right."""
    left, right = CHARTS
    step = (right - left) / max(frames - 1, 1)
    edges = [left + at * step for at in range(frames)]
    top, height = LOADS[0] - 2, LATENCIES[1] - LOADS[0]
    animations = _animated("x", edges) + _animated("width", [right + 2 - edge for edge in edges])
    yield f'<rect x="{right:g}" y="{top:g}" width="{right - left:g}" height="{height:g}" fill="#ffffff" opacity="0.85">{animations}</rect>'


def _animated(attribute: str, values: Sequence[float]) -> str:
    """Return the changes of an attribute: a value a frame, and a rest at the last."""
    length = len(values) * PACE + REST
    times = [at * PACE / length for at in range(len(values))]
    every = ";".join(f"{value:.1f}" for value in (*values, values[-1]))
    keys = ";".join(f"{at:.4f}" for at in (*times, 1.0))
    return f'<animate attributeName="{attribute}" dur="{length:g}s" repeatCount="indefinite" values="{every}" keyTimes="{keys}"/>'


def main() -> None:
    """Run the job, and draw it."""
    message = followed()
    begun = next(second["t"] for second in message["seconds"] if second["rate"] > RATE / 2)
    IMAGE.write_text(picture(message, begun + HOT_AT, seconds=SECONDS - HOT_AT + SHOWN), encoding="utf-8")
    sys.stdout.write(f"{IMAGE}\n")


if __name__ == "__main__":
    main()
