"""Ends the jobs of a process with it: waits for them, stops or cancels them, and never drops them silently.

- At the end of the program it waits for its jobs. Ctrl-C cancels them.
- After an exception, or at the end of an interactive session, it cancels them.
- SIGTERM stops the jobs in order, with a last checkpoint; after 25 s, or at another SIGTERM, it cancels them.

Invariant: a job's error that was never reported is printed before the process ends, and the exit code isn't 0.
"""

from __future__ import annotations

import atexit
import builtins
import concurrent.futures.thread  # now, because it registers the end of its threads, which fails once the process is ending
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from .state.errors import EvenflowError

GRACE = 25.0
"""Seconds that jobs have to stop in order after a SIGTERM: Kubernetes sends a SIGKILL after 30."""

LEAVE_SECONDS = 30.0
"""Seconds that cancelled jobs have to end."""

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes after SIGINT and SIGTERM, as in shells."""

RAYS_HANDLER = ("ray._private.worker", "init.<locals>.sigterm_handler")
"""The SIGTERM handler that `ray.init` installs in a driver: `sys.exit(15)`, without ending its jobs."""


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that this process started. `owned`: True if it ends with this process.

    `ended(timeout)` waits up to `timeout` seconds for its end. `unseen_error()`: the error that ended it, unless it was reported.
    """

    name: str
    owned: bool
    ended: Callable[[float], bool]
    stop: Callable[[], None]
    cancel: Callable[[], None]
    unseen_error: Callable[[], BaseException | None]


class ProcessEnd:
    """The end of a process's jobs; one per process."""

    def __init__(self) -> None:
        self._jobs: list[StartedJob] = []
        self._registered = False
        self._before: Any = None
        """The previous SIGTERM handler."""
        self._signals: SimpleQueue[None] = SimpleQueue()
        """SIGTERMs for the thread that stops the jobs: a handler may interrupt code that holds a lock, and this queue has none."""
        self._terminating = False
        self._code: int | None = None
        self._leaving = False
        """True once the jobs' time to end has passed."""

    def add(self, job: StartedJob) -> None:
        """Register a started job. In the main thread, SIGTERM stops it from now on, unless the program has its own handler."""
        self._jobs = [known for known in self._jobs if not known.ended(0) or known.unseen_error() is not None] + [job]
        if not self._registered:
            self._registered = True
            # Before all of `atexit`, where Ray leaves its cluster; in the main thread, which Ctrl-C interrupts.
            threading._register_atexit(self._at_exit)  # type: ignore[attr-defined]  # noqa: SLF001 -- there is no public way
        if threading.current_thread() is threading.main_thread() and _is_default(handler := signal.getsignal(signal.SIGTERM)):
            self._before = handler
            signal.signal(signal.SIGTERM, self._on_sigterm)
            threading.Thread(target=self._terminate, name="evenflow-sigterm", daemon=True).start()

    def hold(self) -> None:
        """Block the main thread while a SIGTERM is ending the process. Raises SystemExit once all jobs have ended."""
        until = time.monotonic() + GRACE + LEAVE_SECONDS
        while self._terminating and threading.current_thread() is threading.main_thread() and time.monotonic() < until:
            if self._code is not None:
                raise SystemExit(self._code)
            time.sleep(0.05)

    def _running(self) -> list[StartedJob]:
        return [job for job in self._jobs if job.owned and not job.ended(0)]

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        if self._leaving:
            return
        if self._code is not None:
            raise SystemExit(self._code)
        if self._terminating or self._running():
            self._terminating = True
            self._signals.put(None)
        elif self._before is signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        else:
            raise SystemExit(TERMINATED)

    def _terminate(self) -> None:
        """Stop the jobs after a SIGTERM, cancel them after another, stop waiting after a third, and end the main thread."""
        self._signals.get()
        for job in self._running():
            _say(f"job `{job.name}` is stopping because of a SIGTERM; another one cancels it")
            _ask(job.stop)
        until, cancelled = time.monotonic() + GRACE, False
        while running := self._running():
            try:
                self._signals.get(timeout=0.1)
            except Empty:
                if time.monotonic() < until:
                    continue
            if cancelled:
                break
            _cancel(running, "it was to end at once" if time.monotonic() < until else f"it has not stopped within {GRACE:g} s")
            until, cancelled = time.monotonic() + LEAVE_SECONDS, True
        self._code = TERMINATED if cancelled else 0
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGTERM)

    def _at_exit(self) -> None:
        try:
            code = self._leave()
        except SystemExit as end:  # a SIGTERM
            code = end.code if isinstance(end.code, int) else 1
        except KeyboardInterrupt:
            code = INTERRUPTED
            _end(self._running(), "Ctrl-C")
        self._leaving = True
        for error in [error for job in self._jobs if job.owned and (error := job.unseen_error()) is not None]:
            sys.excepthook(type(error), error, error.__traceback__)
            code = code or 1
        if code:
            _exit(code)

    def _leave(self) -> int:
        """Wait until no job runs. Return the exit code if it differs from the program's, else 0."""
        running = self._running() if self._code is None else []  # after a SIGTERM their time is over
        if running and _interactive():
            _end(running, "this session ends")
        elif running and getattr(sys, "last_value", None) is not None:
            _end(running, "an error has ended the program")
        for job in running:
            if not job.ended(0):
                _say(f"job `{job.name}` is still running: waiting for it to end; Ctrl-C cancels it")
            while not job.ended(0.2):
                pass
        self.hold()
        return 0


PROCESS_END = ProcessEnd()


def _is_default(handler: Any) -> bool:
    return handler is signal.SIG_DFL or (getattr(handler, "__module__", None), getattr(handler, "__qualname__", None)) == RAYS_HANDLER


def _interactive() -> bool:
    """True if a person types the program: at the prompt of Python or IPython, or in a notebook."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or hasattr(builtins, "__IPYTHON__")


def _cancel(jobs: list[StartedJob], why: str) -> None:
    for job in jobs:
        _say(f"job `{job.name}` is cancelled: {why}")
        _ask(job.cancel)


def _ask(request: Callable[[], None]) -> None:
    """Send a request from a new thread: on the local runtime a user's function may keep the job from answering."""

    def ask() -> None:
        with suppress(EvenflowError):  # its coordinator may be gone
            request()

    threading.Thread(target=ask, name="evenflow-process-end", daemon=True).start()


def _end(jobs: list[StartedJob], why: str) -> None:
    """Cancel the jobs, and wait for their end."""
    _cancel(jobs, why)
    until = time.monotonic() + LEAVE_SECONDS
    for job in jobs:
        job.ended(max(0.0, until - time.monotonic()))


def _exit(code: int) -> None:
    """End the process with an exit code, which Python can no longer do itself; do the rest of its work first."""
    concurrent.futures.thread._python_exit()  # noqa: SLF001 -- otherwise the process waits for idle threads of executors for ever
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # noqa: SLF001 -- what Python itself would do now; there is no public way
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def _say(text: str) -> None:
    with suppress(Exception):  # the reader of stderr may be gone
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
