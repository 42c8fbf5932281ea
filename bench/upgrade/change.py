"""The figures of one change of a job's code: the longest gap in its output, and latencies before, during and after it.

>>> from ..harness.trace import TRACE
>>> longest_gap(np.array([(0, 2.0, 1), (1_000_000, 3.0, 1), (501_000_000, 4.0, 1)], TRACE), 0.0, 1.0)
0.501
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..harness.errors import BenchmarkError
from ..harness.trace import Trace, between, curve, percentile_of
from .stream import NEW
from .timeline import Phase

PIECE = 0.05
"""Seconds of a point of the curve."""

SLOW_MS = 250.0
"""The latency from which on a piece of the curve counts as disturbed."""

Percentiles = tuple[float, float]
"""p50 and p99 in ms."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change, which took `seconds`; latencies are in ms, `steady_gap` and `gap` in seconds.

    `disturbed`: the seconds whose slowest row took more than `SLOW_MS`. `canary`: the share of the rows that the new code processed
    during the watch. `slowest`: p99 and the largest latency of each phase.
    """

    before: Percentiles
    during: Percentiles
    after: Percentiles
    largest: float
    gap: float
    steady_gap: float
    disturbed: float
    seconds: float
    canary: float
    phases: Sequence[Phase]
    slowest: Sequence[Percentiles]
    curve: list[tuple[float, float, float]]
    checked: str
    busy: float


def longest_gap(trace: Trace, begun: float, ended: float) -> float:
    """Return the longest time (seconds) without a row at the sink, of the rows that were written from `begun` to `ended`."""
    written = np.unique(trace["created"] + (trace["latency"].astype(np.float64) * 1e6).astype(np.int64))
    written = written[(written >= begun * 1e9) & (written <= ended * 1e9)]
    return float(np.diff(written).max() / 1e9) if len(written) > 1 else 0.0


def percentiles(trace: Trace) -> Percentiles:
    """Return p50 and p99."""
    return percentile_of(trace, 0.5), percentile_of(trace, 0.99)


def change_of(
    trace: Trace, begun: float, ended: float, steady: float, after: float, phases: Sequence[Phase], watch: str, checked: str, busy: float
) -> Change:
    """Summarise a change from `begun` to `ended`, in a trace that begins `steady` seconds before it and ends with `after` calm seconds.

    `watch`: the name of the phase in which a canary runs. Raises BenchmarkError for a trace that ends before the calm seconds.
    """
    last = float(trace["created"][-1]) / 1e9
    if last < ended + after:
        raise BenchmarkError(f"the last row was due {last - ended:.1f} s after the change: expected {after:g} s or more")
    whole = curve(between(trace, begun, last), begun, PIECE)
    watched = [between(trace, phase.begun, phase.ended) for phase in phases if phase.name == watch]
    by_phase = [between(trace, phase.begun, phase.ended) for phase in phases]
    return Change(
        percentiles(between(trace, begun - steady, begun - PIECE)),
        percentiles(between(trace, begun, ended)),
        percentiles(between(trace, last - after, last)),
        percentile_of(between(trace, begun, last), 1.0),
        longest_gap(trace, begun - PIECE, last),
        longest_gap(trace, begun - steady, begun - PIECE),
        sum(PIECE for _, _, largest in whole if largest > SLOW_MS),
        ended - begun,
        float(np.mean(watched[0]["key"] == NEW)) if watched else 0.0,
        phases,
        [(percentile_of(part, 0.99), percentile_of(part, 1.0)) for part in by_phase],
        curve(between(trace, begun - 1.0, last), begun, PIECE),
        checked,
        busy,
    )


def joined(*traces: Trace) -> Trace:
    """Return the records of several traces, by due time."""
    together = np.concatenate(traces)
    return together[np.argsort(together["created"], kind="stable")]
