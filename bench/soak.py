"""Looks for growth: an hour's job with a checkpoint every second and keys that come and go, and fifty jobs in one driver.

Every process of the job is measured from outside (`footprint.py`), and so are its folders. A curve grows if its robust slope over the last
three quarters is more than a bound: for memory in MiB per hour, for what is counted times their length.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .soak_hour import measure_job
from .soak_jobs import measure_jobs
from .statistics import robust_slope

WARM_UP_SHARE = 0.25
MOST_MIB_PER_HOUR = 6.0
"""Of resident memory, of one process."""

MOST_MIB_PER_JOB = 0.1
"""Of the driver."""

MOST_COUNT = 0.5
"""Descriptors, threads, processes, files: a half, since the slope of whole numbers that come back is zero."""

MOST_FILES_SHARE = 0.05
"""Of the files in the checkpoint folder, whose number rises and falls with the length of the chains."""

NOT_MEASURED = (
    "the files of the sinks, which grow by design",
    "Ray's own processes are drawn but not judged: it keeps what it knows of the newest 100,000 calls",
)
Curve = Sequence[tuple[float, float]]
"""Minutes, or the number of the job, and what was measured then."""


def run(*, minutes: float, jobs: int, rate: float, backend: str, say: Callable[[str], None]) -> Run:
    """Either part is left out if its number is zero."""
    cases: list[Case] = []
    verdicts: list[Verdict] = []
    checks: list[str] = []
    series: dict[str, Any] = {}
    busy = machine.busy_share()
    with _own_surroundings() as folder:
        if minutes:
            series["job"], found = measure_job(minutes, rate, backend, folder / "job", say)
            checks += found
            cases += cases_of(series["job"], "", busy)
            verdicts += job_verdicts(series["job"])
        for kind, curves in (measure_jobs(jobs, say) if jobs else {}).items():
            series[kind] = curves
            cases += cases_of(curves, f"{kind}, ", busy)
            verdicts += jobs_verdicts(kind, curves)
    arguments = {"minutes": minutes, "jobs": jobs, "rate": rate, "backend": backend}
    return record("soak", arguments, cases, verdicts, checks=checks, not_measured=NOT_MEASURED, series=series)


@contextmanager
def _own_surroundings() -> Iterator[Path]:
    """A temporary folder and a Ray cluster for this process and its children only. The path is short because sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
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
    """What each curve has after the warm-up; `busy`: the share of the machine that others used before."""
    details = ({"busy_before": busy},)
    return [
        Case(f"{prefix}{name}", unit_of(name), "lower", tuple(y for _, y in after_warm_up(curve)), details)
        for name, curve in curves.items()
    ]


def job_verdicts(curves: Mapping[str, Curve]) -> list[Verdict]:
    """The growth of all curves, except Ray's own processes and figures that other programs change."""
    found = []
    for name, curve in curves.items():
        what = name.rpartition(" ")[2]
        if name.startswith(("Ray", "job")) or what in {"pss", "anonymous"}:
            continue
        if what == "rss":
            found.append(Verdict(f"{name}: MiB per hour", 60 * slope_of(curve), MOST_MIB_PER_HOUR, "lower"))
        elif name.startswith("checkpoints"):
            typical = sum(y for _, y in curve) / len(curve)
            found.append(Verdict(f"{name}: growth, share", growth(curve) / max(typical, 1.0), MOST_FILES_SHARE, "lower"))
        else:
            found.append(Verdict(f"{name}: growth", growth(curve), MOST_COUNT, "lower"))
    return found


def jobs_verdicts(kind: str, curves: Mapping[str, Curve]) -> list[Verdict]:
    """Growth of the driver from job to job."""
    found = []
    for name, curve in curves.items():
        what = name.rpartition(" ")[2]
        if name.startswith("Ray") or what in {"pss", "anonymous"}:
            continue
        if what == "rss":
            found.append(Verdict(f"{kind}, {name}: MiB per job", slope_of(curve), MOST_MIB_PER_JOB, "lower"))
        else:
            found.append(Verdict(f"{kind}, {name}: growth", growth(curve), MOST_COUNT, "lower"))
    return found


def after_warm_up(curve: Curve) -> Curve:
    """The last three quarters."""
    return curve[int(len(curve) * WARM_UP_SHARE) :]


def slope_of(curve: Curve) -> float:
    """By which it rises after the warm-up, in a minute or a job."""
    judged = after_warm_up(curve)
    return robust_slope([x for x, _ in judged], [y for _, y in judged]) if len(judged) > 1 else 0.0


def growth(curve: Curve) -> float:
    """By which it has risen after the warm-up."""
    judged = after_warm_up(curve)
    return slope_of(curve) * (judged[-1][0] - judged[0][0]) if judged else 0.0


def unit_of(name: str) -> str:
    """What a curve's numbers are.

    >>> unit_of("driver rss"), unit_of("driver threads"), unit_of("checkpoints bytes")
    ('MiB', 'threads', 'bytes')
    """
    what = name.rpartition(" ")[2]
    return "MiB" if what in {"rss", "pss", "anonymous"} else what
