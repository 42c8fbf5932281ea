"""Looks for growth: an hour's job with a checkpoint every second and keys that come and go, and fifty jobs in one driver.

Every process of the job is measured from outside (`footprint.py`), and so are its folders. A curve grows if its robust slope over the last
three quarters exceeds a bound: for memory in MiB per hour, for counts times their length.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import ray

from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say
from ..harness.record import Case, Findings, Verdict
from ..harness.statistics import robust_slope
from . import plots
from .flow import RATE
from .hour import measure_job
from .jobs import measure_jobs

WARM_UP_SHARE = 0.25
MOST_MIB_PER_HOUR = 6.0
"""The limit of a process's resident memory."""

MOST_MIB_PER_JOB = 0.1
"""The limit of the driver's resident memory."""

MOST_COUNT = 0.5
"""Descriptors, threads, processes, files: a half, since the slope of whole numbers that return to their value is zero."""

MOST_FILES_SHARE = 0.05
"""The limit of the checkpoint folder's files, whose number rises and falls with the length of the chains."""

MEMORY = ("rss", "pss", "anonymous")
Curve = Sequence[tuple[float, float]]
"""Minutes, or the number of the job, and the measured value."""


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure the long job and the many jobs, unless their number is zero."""
    busy, found = machine.busy_share(), Findings([])
    with _own_surroundings() as folder:
        if given.minutes:
            curves, checks = measure_job(given.minutes, given.rate, given.backend, folder / "job", say)
            found += Findings(cases_of(curves, "", busy), job_verdicts(curves), checks, {"job": curves})
        for kind, curves in (measure_jobs(given.jobs, say) if given.jobs else {}).items():
            found += Findings(cases_of(curves, f"{kind}, ", busy), jobs_verdicts(kind, curves), series={kind: curves})
    return found


@contextmanager
def _own_surroundings() -> Iterator[Path]:
    """Give this process and its children a temporary folder and a Ray cluster of their own. The path is short because sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:  # Ray still writes logs
        own = {"TMPDIR": folder, "RAY_ADDRESS": "local"}
        before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        tempfile.tempdir = None
        try:
            yield Path(folder)
        finally:
            ray.shutdown()
            tempfile.tempdir = None
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def cases_of(curves: Mapping[str, Curve], prefix: str, busy: float) -> list[Case]:
    """Return the values of each curve after the warm-up. `busy`: the share of the machine that other programs used before."""
    details = ({"busy_before": busy},)
    return [
        Case(f"{prefix}{name}", unit_of(name), "lower", tuple(y for _, y in after_warm_up(curve)), details)
        for name, curve in curves.items()
    ]


def job_verdicts(curves: Mapping[str, Curve]) -> list[Verdict]:
    """Judge the growth of the long job: all curves except Ray's own processes and the job's progress."""
    return [_verdict(name, curve, "hour") for name, curve in curves.items() if not name.startswith(("Ray", "job")) and _is_judged(name)]


def jobs_verdicts(kind: str, curves: Mapping[str, Curve]) -> list[Verdict]:
    """Judge the growth of the driver from job to job."""
    judged = ((name, curve) for name, curve in curves.items() if not name.startswith("Ray") and _is_judged(name))
    return [_verdict(f"{kind}, {name}", curve, "job") for name, curve in judged]


def _is_judged(name: str) -> bool:
    """Return False for sizes that other programs change."""
    return name.rpartition(" ")[2] not in MEMORY[1:]


def _verdict(name: str, curve: Curve, per: str) -> Verdict:
    if name.endswith(" rss"):
        slope, most = (60 * slope_of(curve), MOST_MIB_PER_HOUR) if per == "hour" else (slope_of(curve), MOST_MIB_PER_JOB)
        return Verdict(f"{name}: MiB per {per}", slope, most, "lower")
    if name.startswith("checkpoints"):
        typical = sum(y for _, y in curve) / len(curve)
        return Verdict(f"{name}: growth, share", growth(curve) / max(typical, 1.0), MOST_FILES_SHARE, "lower")
    return Verdict(f"{name}: growth", growth(curve), MOST_COUNT, "lower")


def after_warm_up(curve: Curve) -> Curve:
    """Return the last three quarters."""
    return curve[int(len(curve) * WARM_UP_SHARE) :]


def slope_of(curve: Curve) -> float:
    """Return the slope after the warm-up, per minute or job."""
    judged = after_warm_up(curve)
    return robust_slope([x for x, _ in judged], [y for _, y in judged]) if len(judged) > 1 else 0.0


def growth(curve: Curve) -> float:
    """Return the rise after the warm-up, by the slope."""
    judged = after_warm_up(curve)
    return slope_of(curve) * (judged[-1][0] - judged[0][0]) if judged else 0.0


def unit_of(name: str) -> str:
    """Return the unit of a curve.

    >>> unit_of("driver rss"), unit_of("driver threads"), unit_of("checkpoints bytes")
    ('MiB', 'threads', 'bytes')
    """
    what = name.rpartition(" ")[2]
    return "MiB" if what in MEMORY else what


BENCHMARK = Benchmark(
    "soak",
    "a long job with keys that come and go, and many jobs in one driver: does anything grow?",
    (
        Argument("--minutes", float, 60.0, "of the long job; 0 skips it"),
        Argument("--jobs", int, 50, "on either runtime; 0 skips them"),
        Argument("--rate", float, RATE, "rows per second of the long job"),
        Argument("--backend", str, "memory", "the state backend of the long job"),
    ),
    run,
    (
        "the files of the sinks, which grow by design",
        "Ray's own processes are drawn but not judged: it remembers the newest 100,000 calls",
    ),
    plots.draw,
)
