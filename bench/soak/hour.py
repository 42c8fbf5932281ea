"""The long job of the soak benchmark, measured every ten seconds."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.exceptions import RayError

import evenflow as ef

from ...actors.processes.process import NAMESPACE
from ...actors.processes.ray_internals import object_store
from ..harness import machine
from ..harness.jobs import rows_read
from .flow import KEYS, soak_flow
from .footprint import Footprint, files_in, own_footprint, together

INTERVAL = 10.0
MOVE_EVERY = 60.0
"""Seconds between two migrations."""

RAY_KINDS = ("Ray gcs_server", "Ray raylet", "Ray others")
"""The kinds of Ray's own processes: the one that records calls and actors, those that start processes, and others such as idle workers."""

Curves = dict[str, list[tuple[float, float]]]


def measure_job(minutes: float, rate: float, backend: str, folder: Path, say: Callable[[str], object]) -> tuple[Curves, list[str]]:
    """Run the job for `minutes`. Returns curves over the minutes, and what the job did."""
    flow, counted = soak_flow(rate, KEYS, folder / "out")
    (folder / "state").mkdir(parents=True)
    config = ef.JobConfig(
        checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval="1s"), state=ef.StateConfig(backend, dir=str(folder / "state"))
    )
    job = flow.run(config=config)
    try:
        watch, moved = _watched(job, minutes, folder, say)
        job.stop(drain=True)
        job.wait("10m")
    finally:
        job.cancel()  # if it has not ended
    reports, status = job.checkpoints(), job.status()
    failed = sum(report.problem is not None for report in reports)
    made = f"{status.completed_checkpoints:,} checkpoints complete, {failed} of the last {len(reports)} failed, {status.attempt} restarts"
    rows = f"{rows_read(job, 'generate'):,} rows read in {minutes:g} minutes, {counted.rows:,} running aggregates committed"
    return watch.curves, [f"{rows}, {moved} migrations", made]


def _watched(job: ef.Job, minutes: float, folder: Path, say: Callable[[str], object]) -> tuple[_Watch, int]:
    """Measure the job all the time, and migrate now and then; returns the number of migrations too."""
    watch = _Watch(job, folder)
    begun, moved = time.monotonic(), 0
    while (elapsed := time.monotonic() - begun) < minutes * 60:
        watch.measure(elapsed / 60)
        if elapsed >= (moved + 1) * MOVE_EVERY:
            moved += 1
            job.migrate("windows", groups=range(64), to=moved % 2, timeout="5m")
        if len(watch.curves["driver rss"]) % 6 == 1:
            say(watch.line())
        time.sleep(max(0.0, (int(elapsed / INTERVAL) + 1) * INTERVAL - (time.monotonic() - begun)))
    return watch, moved


def _ray_kind(command: str) -> str:
    """Return the kind of one of Ray's own processes, by the first word of its command line."""
    return next((kind for kind in RAY_KINDS if command.endswith(kind.removeprefix("Ray "))), RAY_KINDS[-1])


class _Watch:
    """Measurements of a job's processes and folders, as curves."""

    def __init__(self, job: ef.Job, folder: Path) -> None:
        self._job, self._folder = job, folder
        self._pids: dict[str, int] = {}
        self.curves: Curves = {}

    def measure(self, minute: float) -> None:
        """Measure everything once."""
        if not all(map(psutil.pid_exists, self._pids.values())) or not self._pids:
            self._pids = self._processes()
        found = {name: Footprint.of(pid) for name, pid in self._pids.items()}
        others = {pid: name for pid, name in machine.descendants(os.getpid()).items() if pid not in self._pids.values()}
        rays = {kind: [pid for pid, name in others.items() if _ray_kind(name) == kind] for kind in RAY_KINDS}
        everyone = {"driver": own_footprint(), **found, **{kind: together(map(Footprint.of, pids)) for kind, pids in rays.items()}}
        figures = {f"{name} {what}": value for name, one in everyone.items() for what, value in asdict(one or Footprint()).items()}
        temporary = Path(tempfile.gettempdir())
        files, size = files_in(self._folder / "checkpoints")
        objects, object_bytes = object_store(ray.get_runtime_context().gcs_address)
        figures |= {
            "Ray processes": len(others),
            "checkpoints files": files,
            "checkpoints bytes": size,
            "state files": files_in(self._folder / "state")[0],
            "temporary folders": len(list(temporary.glob("evenflow*"))),
            "sockets": sum(files_in(folder)[0] for folder in temporary.glob("evenflow-*")),
            "object store bytes": object_bytes,
            "object store objects": objects,
            "job checkpoints": self._job.status().completed_checkpoints,
            "job rows": rows_read(self._job, "generate"),
        }
        for name, value in figures.items():
            self.curves.setdefault(name, []).append((round(minute, 3), round(float(value), 3)))

    def line(self) -> str:
        """Return the newest figures in short."""
        newest = {name: curve[-1] for name, curve in self.curves.items()}
        memory = ", ".join(f"{name.removesuffix(' rss')} {newest[name][1]:.0f}" for name in newest if name.endswith(" rss"))
        files, made, rows = (newest[name][1] for name in ("checkpoints files", "job checkpoints", "job rows"))
        return f"{newest['driver rss'][0]:.1f} min: MiB {memory}; {made:.0f} checkpoints in {files:.0f} files, {rows:,.0f} rows"

    def _processes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name in (f"{self._job.name}/coordinator", *(place.process for place in self._job.status().places.values())):
            try:
                actor = ray.get_actor(name, namespace=NAMESPACE)
                pid: Any = ray.get(actor.__ray_call__.remote(lambda _: os.getpid()), timeout=60)
                found[name] = pid
            except (ValueError, RayError):  # it is being restarted
                continue
        return found
