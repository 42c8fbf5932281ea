"""A job that is shown again and again until it has ended: on a terminal, or in the cell of a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.live import Live

from ..engine.errors import JobError
from ..ui.watch import Watch
from .terminal import as_html, console
from .top import frame

if TYPE_CHECKING:
    from ..job import Job

WINDOWS = 5
"""The number of newest windows over which loads are shown."""


def frame_of(job: Job, watch: Watch) -> RenderableType:
    """One picture of a job. Raises JobNotRunningError once it has ended."""
    seen = watch.look()
    loads = {stage.name: job.load(stage.name, windows=WINDOWS) for stage in seen.view.stages if stage.table is not None}
    return frame(seen, job.metrics(), loads)


def show(job: Job, watch: Watch, every: float, timeout: float | None) -> None:
    """Until the job has ended, `timeout` seconds are over, or Ctrl-C."""
    cell = _cell()
    with suppress(KeyboardInterrupt):
        if cell is not None:
            update = _Cell(cell).show
            for frame_now in _frames(job, watch, every, timeout):
                update(frame_now)
        else:
            with Live(console=console(), auto_refresh=False) as live:
                for frame_now in _frames(job, watch, every, timeout):
                    live.update(frame_now, refresh=True)


def _frames(job: Job, watch: Watch, every: float, timeout: float | None) -> Iterator[RenderableType]:
    until = None if timeout is None else time.monotonic() + timeout
    while not job.status().state.final and (until is None or time.monotonic() < until):
        with suppress(JobError):  # the job may end between two questions
            yield frame_of(job, watch)
        time.sleep(every)


class _Cell:
    """A notebook's cell, whose picture is replaced. `display`: IPython's function."""

    def __init__(self, display: Any) -> None:
        self._display, self._handle = display, None

    def show(self, renderable: RenderableType) -> None:
        picture = _Html(as_html(renderable))
        if self._handle is None:
            self._handle = self._display(picture, display_id=True)
        else:
            self._handle.update(picture)


class _Html:
    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


def _cell() -> Any:
    """IPython's `display` if this runs in a notebook, else None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or "IPKernelApp" not in shell.config:
        return None
    from IPython.display import display  # type: ignore[import-not-found]

    return display
