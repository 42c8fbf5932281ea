"""The process that follows jobs: it polls each job's coordinator once a second and sends the views to the server.

A process of its own, because Ray ends a process that has lost its cluster. Run as `python -m evenflow.page.follower [JOB]`; it ends when
its standard input is closed. Without a job it follows all running jobs.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..connectors.pipes import read_message, write_message
from ..engine.errors import ClusterError, JobNotRunningError, RequestError
from ..scheduler.protocol.requests import ShowProgress, ShowStatus
from ..scheduler.protocol.view import JobView
from ..state.errors import EvenflowError
from ..views.polling import poll_views
from .actions import SAMPLED_SECONDS, Sample, begun
from .looks import KeyLook, TableLook, looked
from .messages import ActionDone, ActionWanted, Message, Quiet, Unlinked, Viewed, packed, unpacked

if TYPE_CHECKING:
    from ..actors.cluster import WatchedJob

LOOK_FOR_JOBS = 3.0
"""Seconds from one search for new jobs to the next."""


class Follower:
    """A follower of the job `only`, or of all jobs, that writes to the file descriptor `pipe`."""

    def __init__(self, pipe: int, only: str | None) -> None:
        self._pipe, self._only = pipe, only
        self._lock, self._sampling = threading.Lock(), threading.Lock()
        self._followed: set[str] = set()
        self._runtimes: dict[str, WatchedJob] = {}

    def run(self) -> None:
        """Follow jobs for ever; the process ends if the cluster is lost for good."""
        while True:
            try:
                for name in self._wanted():
                    if name not in self._followed:
                        self._followed.add(name)
                        threading.Thread(target=self._follow, args=(name,), daemon=True).start()
                self.send(Quiet())
            except ClusterError as error:
                self.send(Unlinked("", "lost", str(error)))
            time.sleep(LOOK_FOR_JOBS)

    def send(self, message: Message) -> None:
        """Send a message to the server, from any thread."""
        with self._lock:
            write_message(self._pipe, packed(message))

    def _wanted(self) -> list[str]:
        from ..actors.cluster import running_jobs

        running = running_jobs(self._only)
        if self._only is None:
            return running
        if self._only not in running and self._only not in self._followed:
            there = f"; running: {', '.join(running)}" if running else ""
            self.send(Unlinked(self._only, "waiting", f"waits for the job `{self._only}` to start{there}"))
            return []
        return [self._only]

    def _follow(self, name: str) -> None:
        """Send views until the job has ended; it may start again under its name."""
        from ..actors.cluster import find_job

        try:
            runtime = find_job(name)
            self._runtimes[name] = runtime
            threading.Thread(target=_await_end, args=(runtime,), daemon=True).start()
            for view in poll_views(runtime):
                self.send(Viewed(name, view) if isinstance(view, JobView) else Unlinked(name, "lost", str(view)))
            self.send(Unlinked(name, "ended", f"the job `{name}` has ended: it is {runtime.ask(ShowStatus()).state}"))
        except EvenflowError as error:
            self.send(Unlinked(name, "ended" if isinstance(error, JobNotRunningError) else "lost", str(error)))
        finally:
            self._runtimes.pop(name, None)
            self._followed.discard(name)

    def listen(self, pipe: int) -> None:
        """Carry out the server's actions, each in a thread of its own, until it closes the pipe."""
        while (message := read_message(pipe)) is not None:
            threading.Thread(target=self._act, args=(unpacked(message),), daemon=True).start()

    def _act(self, wanted: ActionWanted) -> None:
        try:
            if wanted.job not in self._runtimes:
                raise JobNotRunningError(f"the job `{wanted.job}` is not followed just now")
            runtime = self._runtimes[wanted.job]
            if isinstance(wanted.request, Sample):
                stacks = self._sampled(runtime, wanted.request)
                self.send(ActionDone(wanted.number, {"done": begun(wanted.request, None), "stacks": stacks}))
            elif isinstance(wanted.request, KeyLook | TableLook):
                self.send(ActionDone(wanted.number, looked(runtime, wanted.job, wanted.request)))
            else:
                number: int | None = runtime.ask(wanted.request)
                self.send(ActionDone(wanted.number, {"done": begun(wanted.request, number)}))
        except EvenflowError as error:
            self.send(ActionDone(wanted.number, problem=str(error)))

    def _sampled(self, runtime: WatchedJob, request: Sample) -> str:
        """Sample one worker at a time: that stops its process a hundred times a second."""
        from ..actors.processes.stack_samples import sample_stacks

        if not self._sampling.acquire(blocking=False):
            raise RequestError("another worker is being sampled: wait until that is done")
        try:
            place = runtime.ask(ShowStatus()).places.get(request.worker)
            if place is None:
                raise RequestError(f"{request.worker} has no process just now")
            return sample_stacks(place.process, SAMPLED_SECONDS)
        finally:
            self._sampling.release()


def _await_end(runtime: WatchedJob) -> None:
    """Wait for the job's end, after which the runtime refuses to answer."""
    with suppress(EvenflowError):
        while not runtime.ask(ShowProgress(0)).state.final:
            pass


def main() -> None:
    """Follow jobs. Standard output belongs to the server; Ray's output goes to standard error."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    follower = Follower(pipe, sys.argv[1] if len(sys.argv) > 1 else None)
    threading.Thread(target=_end_with_server, args=(follower,), daemon=True).start()
    try:
        follower.run()
    except BrokenPipeError:
        os._exit(0)


def _end_with_server(follower: Follower) -> None:
    try:
        follower.listen(sys.stdin.fileno())
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
