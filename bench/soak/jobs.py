"""Short jobs one after another in one driver, and the resources that each leaves behind there."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import ray

import evenflow as ef

from ...actors.processes.ray_internals import references
from ..harness import machine
from ..harness.errors import BenchmarkError
from .footprint import Footprint, files_in, own_footprint, own_threads, together
from .hour import Curves

ENDS = ("finished", "failed", "cancelled")
WAIT = "120s"
Runtime = Literal["local", "ray"]


def measure_jobs(jobs: int, say: Callable[[str], object]) -> dict[str, Curves]:
    """Run `jobs` jobs on each runtime; returns curves over the number of the job."""
    found: dict[str, Curves] = {}
    for runtime in ("local", "ray"):
        curves = found[f"{runtime} jobs"] = {}
        for number in range(jobs):
            with tempfile.TemporaryDirectory(prefix="soak-bench-") as folder:
                one_job(runtime, ENDS[number % len(ENDS)], Path(folder))
            for name, value in left_behind().items():
                curves.setdefault(name, []).append((number + 1, round(float(value), 3)))
            newest = {name: curve[-1][1] for name, curve in curves.items()}
            say(f"{runtime} job {number + 1}, {ENDS[number % len(ENDS)]}: {newest}")
    return found


def one_job(runtime: Runtime, end: str, folder: Path) -> None:
    """Run a job with keyed state, checkpoints and both kinds of sinks that ends in the way that `end` names."""

    def checked(row: dict[str, Any]) -> dict[str, Any]:
        if end == "failed" and row["seq"] == 1_500:
            raise ValueError("the job is to fail")
        return row

    flow = ef.Dataflow("bench-soak-short")
    rows: list[dict[str, Any]] = []
    total = None if end == "cancelled" else 2_000
    checked_rows = flow.read(ef.generate(total=total, rate=20_000, every="20ms", keys=500)).map(checked)
    checked_rows.key_by("key").stateful_map(numbered).write(ef.write_parquet(folder / "out"))
    checked_rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count()).write(ef.to_list(rows))
    config = ef.JobConfig(parallelism=1, checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval="200ms"))
    job = flow.run(runtime=runtime, config=config)
    if end == "cancelled":
        job.checkpoint(WAIT)
        job.cancel()
    with suppress(ef.RecordError):
        job.wait(WAIT)
    if job.status().state.value != end:
        raise BenchmarkError(f"a job of the soak benchmark was to end {end} and is {job.status().state.value}")


def numbered(state: int | None, row: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Number the rows of each key."""
    return (state or 0) + 1, {"key": row["key"], "n": (state or 0) + 1}


def left_behind() -> dict[str, float]:
    """Return the resources of this process and its cluster after a job has ended, by name."""
    _settle()
    others = machine.descendants(os.getpid())
    temporary = Path(tempfile.gettempdir())
    figures: dict[str, float] = {f"driver {what}": value for what, value in asdict(own_footprint()).items()}
    figures |= {f"Ray {what}": value for what, value in asdict(together(map(Footprint.of, others))).items()}
    figures |= {
        "Python threads": sum(not name.startswith("ray") for name in own_threads()),
        "job processes": len(machine.workers_below(os.getpid())),
        "Ray processes": len(others),
        "temporary folders": len(list(temporary.glob("evenflow*"))),
        "sockets": sum(files_in(folder)[0] for folder in temporary.glob("evenflow-*")),
    }
    return {**figures, "references": references()} if ray.is_initialized() else figures


def _settle() -> None:
    """Wait for the processes of the job's actors to end: Ray ends them some time after the job."""
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline and machine.workers_below(os.getpid()):
        time.sleep(0.1)
