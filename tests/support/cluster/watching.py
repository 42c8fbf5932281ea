"""Observation of a cluster for tests: waiting with a bound, and the parts of a job outside this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import ray
from patience import patience
from ray.exceptions import RayActorError

from evenflow.actors.cluster import NAMESPACE, WORKERS
from evenflow.scheduler.load.metrics import WorkerFigures

PATIENCE = patience(60)
SUPPORT = Path(__file__).parent
"""The folder of the programs that tests start."""
LOOK_SECONDS = 0.1
"""Seconds between two checks: most call a coordinator on Ray, which costs both some milliseconds of a processor."""


def until(condition: Callable[[], Any], what: str | Callable[[], str], patience: float = PATIENCE) -> Any:
    """Return the first true value of `condition`, which is evaluated repeatedly; fail after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {patience} s in vain until {what if isinstance(what, str) else what()}"
        time.sleep(LOOK_SECONDS)
    return value


def await_rows(job: Any, delivered: list[Any], count: float) -> None:
    """Wait until the running job has delivered `count` more rows."""
    before = len(delivered)

    def more() -> bool:
        assert not job.status().state.final, job.status().error
        return len(delivered) > before + count

    until(more, "new rows are committed")


def kill(job: Any, worker: str) -> None:
    """Kill a worker and wait until the job runs again: rows of an earlier checkpoint may still come meanwhile."""
    process, attempt = pid(job, worker), job.status().attempt
    os.kill(process, signal.SIGKILL)
    until(lambda: (now := job.status()).attempt > attempt and now.state.value == "running", f"{job.name} runs again")


def actors() -> list[str]:
    """Return the names of evenflow's actors on the cluster, without the processes that wait for this process's next job."""
    named = {actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True) if actor["namespace"] == NAMESPACE}
    return sorted(named.difference(WORKERS.idle()))


def actor(job: Any, name: str) -> Any:
    """Return the actor of a worker of a running job, or of its `coordinator`."""
    places = job.status().places
    return ray.get_actor(places[name].process if name in places else f"{job.name}/{name}", namespace=NAMESPACE)


def pid(job: Any, name: str) -> int:
    """Return the process id of such an actor, of the next one if it ends meanwhile: a recovery may be about to replace it."""

    def found() -> int | None:
        with suppress(RayActorError, ValueError):  # it has ended meanwhile
            answered: int = ray.get(actor(job, name).__ray_call__.remote(lambda _: os.getpid()), timeout=PATIENCE)
            return answered
        return None

    answer: int = until(found, f"{name} answers")
    return answer


def printed_by(program: str, folder: Path) -> Any:
    """Run a program of `SUPPORT` with its own cluster and return the JSON in the last line of its output."""
    from ray_settings import OF_PROGRAMS  # here, because the programs use this module too, and don't find that one

    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | {"PYTHONPATH": OF_PROGRAMS}
    command = [sys.executable, str(SUPPORT / program), str(folder)]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=patience(400))
    assert done.returncode == 0, done.stderr[-5_000:]
    return json.loads(done.stdout.splitlines()[-1])


def end(names: Iterable[str]) -> None:
    """End these actors, those that start others first."""
    for name in sorted(names, key=lambda name: not name.endswith("/coordinator")):
        with suppress(ValueError):  # ended meanwhile
            ray.kill(ray.get_actor(name, namespace=NAMESPACE))


def socket_folders(folder: Path) -> list[Path]:
    return list(folder.glob("evenflow-*"))


def processes_of(folder: Path) -> dict[int, str]:
    """Return the other processes, with their command lines, that run in this temporary folder."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended meanwhile, or is another user's
            if process.pid != os.getpid() and process.environ().get("TMPDIR") == str(folder):
                found[process.pid] = " ".join(filter(None, process.cmdline()))  # Ray fills titles up with nothing
    return {pid: command for pid, command in found.items() if command}


def figures_of(job: Any, operator: str) -> list[WorkerFigures]:
    return [figures for figures in job.metrics() if figures.operator == operator]
