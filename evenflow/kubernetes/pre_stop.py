"""`evenflow k8s pre-stop`: what a pod does before Kubernetes ends it, so that the next start repeats little.

A stop would end the program with exit code 0, and KubeRay would not start it again after a node was drained. So jobs are not stopped
here: they take a checkpoint, from which they continue. A job that is stopping already gets the time for it, because all pods of a
cluster that is deleted end at the same time.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

from .. import connect
from ..actors.cluster import running_jobs
from ..engine.errors import JobFailedError, JobNotRunningError
from ..job import Job
from ..scheduler.protocol.effects import JobState
from ..state.errors import EvenflowError

CONNECT_SECONDS = 30.0
"""Seconds to reach the cluster, which may have lost its head."""


def save(names: Sequence[str], timeout: float, find: Callable[[str], Job] = connect) -> list[str]:
    """Save these jobs for up to `timeout` seconds; return a line for each."""
    with ThreadPoolExecutor(max_workers=max(1, len(names))) as threads:
        return list(threads.map(lambda name: _saved(name, timeout, find), names))


def _saved(name: str, timeout: float, find: Callable[[str], Job]) -> str:
    """Let a job take a checkpoint, or reach the end of its stop; return what was done."""
    until = time.monotonic() + timeout
    try:
        job = find(name)
        if job.status().state is not JobState.STOPPING:
            number = job.checkpoint(timeout).number
            if job.status().state is not JobState.STOPPING:
                return f"job `{name}` has checkpoint {number}"
        job.wait(max(1.0, until - time.monotonic()))
    except (JobNotRunningError, JobFailedError) as error:
        return f"job `{name}` has ended: {error}"
    except EvenflowError as error:
        return f"job `{name}` continues from an earlier checkpoint: {error}"
    return f"job `{name}` has stopped"


def run(timeout: float) -> NoReturn:
    """Save the jobs of the cluster, print what was done, and end this process, whatever Ray's threads do."""
    begun = time.monotonic()
    watch = threading.Timer(CONNECT_SECONDS, _end, [["the Ray cluster doesn't answer: nothing is saved"]])
    watch.daemon = True
    watch.start()
    try:
        names = running_jobs()
    except EvenflowError as error:
        _end([f"nothing is saved: {error}"])
    watch.cancel()
    _end(save(names, max(1.0, timeout - (time.monotonic() - begun))))


def _end(lines: Sequence[str]) -> NoReturn:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    os._exit(0)
