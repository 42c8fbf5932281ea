"""Shows a job again and again until it has ended, on a terminal or in the cell of a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rich.console import RenderableType
from rich.live import Live

from ..engine.errors import JobError
from ..views.polling import JobMonitor
from .console import as_html, console
from .top import frame


def show(monitor: JobMonitor, every: float, timeout: float | None) -> None:
    """Show the job until it has ended, `timeout` seconds have passed, or Ctrl-C."""
    cell = _cell()
    with suppress(KeyboardInterrupt):
        if cell is not None:
            update = _Cell(cell).show
            for picture in _frames(monitor, every, timeout):
                update(picture)
        else:
            with Live(console=console(), auto_refresh=False) as live:
                for picture in _frames(monitor, every, timeout):
                    live.update(picture, refresh=True)


def _frames(monitor: JobMonitor, every: float, timeout: float | None) -> Iterator[RenderableType]:
    until = None if timeout is None else time.monotonic() + timeout
    while not monitor.ended and (until is None or time.monotonic() < until):
        with suppress(JobError):  # the job may end between two requests
            yield frame(monitor.poll())
        time.sleep(every)


class _Cell:
    """A notebook's cell whose picture is replaced. `display`: IPython's function."""

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
    """Return IPython's `display` if this runs in a notebook, else None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or "IPKernelApp" not in shell.config:
        return None
    from IPython.display import display  # type: ignore[import-not-found]

    return display
