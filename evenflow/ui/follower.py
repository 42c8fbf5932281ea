"""The process that follows jobs: one question a second to each job's coordinator, and what it answers goes to the server.

A process of its own, because Ray ends a process that has lost its cluster. Run as `python -m evenflow.ui.follower [JOB]`; it ends
when its standard input is closed. Without a job it follows all that run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO

from ..actors.processes.stack_samples import sample_stacks
from ..engine.errors import ClusterError, JobNotRunningError, RequestError
from ..recording.looks import looks
from ..scheduler.protocol.view import JobView
from ..state.errors import EvenflowError
from .actions import SAMPLED_SECONDS, Sample, begun
from .frames import read, write
from .heard import Answered, Asked, Heard, Quiet, Unlinked, Viewed

if TYPE_CHECKING:
    from ..actors.cluster import WatchedJob

LOOK_FOR_JOBS = 3.0
"""Seconds from one look for new jobs to the next."""


class Follower:
    """Follows the job `only`, or all jobs. `tell` may be called by any of its threads."""

    def __init__(self, pipe: BinaryIO, only: str | None) -> None:
        self._pipe, self._only = pipe, only
        self._lock, self._sampling = threading.Lock(), threading.Lock()
        self._followed: set[str] = set()
        self._runtimes: dict[str, WatchedJob] = {}

    def run(self) -> None:
        """Returns never; the process ends if the cluster is lost in a way that can't be mended here."""
        while True:
            try:
                for name in self._wanted():
                    if name not in self._followed:
                        self._followed.add(name)
                        threading.Thread(target=self._follow, args=(name,), daemon=True).start()
                self.tell(Quiet())
            except ClusterError as error:
                self.tell(Unlinked("", "lost", str(error)))
            time.sleep(LOOK_FOR_JOBS)

    def tell(self, heard: Heard) -> None:
        """Send it to the server."""
        with self._lock:
            write(self._pipe, heard)

    def _wanted(self) -> list[str]:
        from ..actors.cluster import running_jobs

        running = running_jobs(self._only)
        if self._only is None:
            return running
        if self._only not in running and self._only not in self._followed:
            there = f"; running: {', '.join(running)}" if running else ""
            self.tell(Unlinked(self._only, "waiting", f"waits for the job `{self._only}` to start{there}"))
            return []
        return [self._only]

    def _follow(self, name: str) -> None:
        """Until the job has ended; it may start again under its name."""
        from ..actors.cluster import find_job
        from ..job import Job

        try:
            runtime = find_job(name)
            self._runtimes[name] = runtime
            Job(name, runtime, {}, {})  # its thread waits for the job's end, after which the runtime refuses to ask
            for view in looks(runtime):
                self.tell(Viewed(name, view) if isinstance(view, JobView) else Unlinked(name, "lost", str(view)))
            self.tell(Unlinked(name, "ended", f"the job `{name}` has ended: it is {runtime.status().state}"))
        except EvenflowError as error:
            self.tell(Unlinked(name, "ended" if isinstance(error, JobNotRunningError) else "lost", str(error)))
        finally:
            self._runtimes.pop(name, None)
            self._followed.discard(name)

    def hear(self, pipe: BinaryIO) -> None:
        """Carry out what the server asks for, each in a thread of its own, until it closes the pipe."""
        while (asked := read(pipe)) is not None:
            threading.Thread(target=self._act, args=(asked,), daemon=True).start()

    def _act(self, asked: Asked) -> None:
        try:
            if asked.job not in self._runtimes:
                raise JobNotRunningError(f"the job `{asked.job}` is not followed just now")
            runtime = self._runtimes[asked.job]
            if isinstance(asked.request, Sample):
                stacks = self._sampled(runtime, asked.request)
                self.tell(Answered(asked.number, {"done": begun(asked.request, None), "stacks": stacks}))
            else:
                number: int | None = runtime.ask(asked.request)
                self.tell(Answered(asked.number, {"done": begun(asked.request, number)}))
        except EvenflowError as error:
            self.tell(Answered(asked.number, problem=str(error)))

    def _sampled(self, runtime: WatchedJob, request: Sample) -> str:
        """One at a time: each stops a process of the job a hundred times a second."""
        if not self._sampling.acquire(blocking=False):
            raise RequestError("a worker is being looked at already: wait until that is done")
        try:
            place = runtime.status().places.get(request.worker)
            if place is None:
                raise RequestError(f"{request.worker} has no process just now")
            return sample_stacks(place.process, SAMPLED_SECONDS)
        finally:
            self._sampling.release()


def main() -> None:
    """Standard output is the server's; what Ray prints goes to standard error."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    follower = Follower(pipe, sys.argv[1] if len(sys.argv) > 1 else None)
    threading.Thread(target=_end_with_server, args=(follower,), daemon=True).start()
    try:
        follower.run()
    except BrokenPipeError:
        os._exit(0)


def _end_with_server(follower: Follower) -> None:
    try:
        follower.hear(sys.stdin.buffer)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
