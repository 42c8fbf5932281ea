"""Views of a running job, one a second: one question to its coordinator each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol, TypeVar

from ..engine.errors import JobNotRunningError, JobTimeoutError
from ..scheduler.protocol.requests import Request, ShowView
from ..scheduler.protocol.view import JobView

EVERY = 1.0
"""Seconds from one question to the next."""

OVERLAP = 3.0
"""Seconds that the questions overlap, for windows that are still on their way to the coordinator."""

T = TypeVar("T")


class Asked(Protocol):
    """What asks a job's coordinator."""

    def ask(self, request: Request[T]) -> T: ...


def looks(runtime: Asked) -> Iterator[JobView | JobTimeoutError]:
    """Until the job has ended. An error stands for a coordinator that did not answer in time; it is asked again.

    Raises JobLostError if the coordinator is gone.
    """
    since = 0.0
    while True:
        begun = time.monotonic()
        try:
            view = runtime.ask(ShowView(since))
        except JobTimeoutError as error:
            yield error
            continue
        except JobNotRunningError:
            return
        since = view.now - OVERLAP
        yield view
        time.sleep(max(0.0, begun + EVERY - time.monotonic()))
