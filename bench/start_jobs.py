"""Starts jobs and empty actors in turn on a cluster of its own, and prints how long each took, as JSON.

`python -m evenflow.bench.start_jobs REPEAT` runs each `REPEAT` times, after one time that is not counted: the driver has loaded its modules
then, and no process is left that Ray had started in advance.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from typing import Any

import psutil
import ray

import evenflow as ef

from ..actors.cluster import WORKERS

PARALLELISM = 2
"""Two operators of two workers, and a coordinator: five processes."""

ACTORS = 5
QUIET, LOOK = 0.03, 0.5
"""Ray has settled when its processes use less than `QUIET` seconds of a processor in `LOOK` seconds."""


class Empty:
    """An actor that does nothing."""

    def ping(self) -> None:
        """Returns once the actor's process runs."""


def main() -> None:
    """Measure, and print lists of seconds by name."""
    repeat = int(sys.argv[1])
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 -- Ray's spelling
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False, logging_level=logging.ERROR)
    found: dict[str, list[float]] = {name: [] for name in ("actors", "actors_cpu", "job", "job_cpu", "second")}
    empty: Any = ray.remote(Empty)
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-start-") as folder:
        for number in range(repeat + 1):
            for part in ("actors", "jobs") if number % 2 else ("jobs", "actors"):
                settle()
                if part == "actors":
                    measure_actors(empty, found)
                else:
                    measure_jobs(f"start-{number}", folder, found)
    print(json.dumps({name: values[1:] for name, values in found.items()}))


def measure_actors(empty: Any, found: dict[str, list[float]]) -> None:
    """Start five empty actors, and end them."""
    used, begun = processor_seconds(), time.perf_counter()
    actors = [empty.options(num_cpus=0).remote() for _ in range(ACTORS)]
    ray.get([actor.ping.remote() for actor in actors])
    found["actors"].append(time.perf_counter() - begun)
    found["actors_cpu"].append(processor_seconds() - used)
    for actor in actors:
        ray.kill(actor)


def measure_jobs(name: str, folder: str, found: dict[str, list[float]]) -> None:
    """Start a job in new processes, and when it has ended another one, which gets those of the first. None is left for the next jobs."""
    used, begun = processor_seconds(), time.perf_counter()
    first = start(name, folder, keep="60s")
    found["job"].append(time.perf_counter() - begun)
    found["job_cpu"].append(processor_seconds() - used)
    first.cancel()
    first.wait()
    begun = time.perf_counter()
    second = start(f"{name}-again", folder, keep="1s")
    found["second"].append(time.perf_counter() - begun)
    second.cancel()
    second.wait()
    while WORKERS.idle():
        time.sleep(LOOK)


def start(name: str, folder: str, *, keep: str) -> ef.Job:
    """A job whose workers all run. `keep`: for how long its processes wait for the next one."""
    flow = ef.Dataflow(name)
    counts = flow.read(ef.generate(rate=100)).key_by("key").aggregate(n=ef.count(), emit="final")
    counts.write(ef.write_parquet(f"{folder}/{name}"))
    return flow.run(config=ef.JobConfig(parallelism=PARALLELISM, worker=ef.WorkerConfig(keep=keep)))


def settle() -> None:
    """Wait until Ray does nothing."""
    before = processor_seconds()
    while True:
        time.sleep(LOOK)
        now = processor_seconds()
        if now - before < QUIET:
            return
        before = now


def processor_seconds() -> float:
    """Processor time that this process and the cluster's have used, those included that have ended."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


if __name__ == "__main__":
    main()
