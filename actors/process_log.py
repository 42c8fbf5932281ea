"""The level at which a process of a job logs: that of the root logger, so it holds for users' functions and for libraries too.

Invariant: without a level of the job, logging is as the process set it up.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@dataclass(slots=True)
class _SetUp:
    """The process's own set-up, while a job's level replaces it. `handler`: added where there was none that shows all levels."""

    level: int
    handler: logging.Handler | None


_replaced: list[_SetUp] = []


def root_logger() -> logging.Logger:
    """Return the logger whose level is that of the process."""
    return logging.getLogger()


def set_log_level(level: str | None) -> None:
    """Log at this level, for example "debug", from now on; None: as the process did before."""
    root = root_logger()
    if level is None:
        while _replaced:
            before = _replaced.pop()
            root.setLevel(before.level)
            if before.handler is not None:
                root.removeHandler(before.handler)
        return
    if not _replaced:
        handler = None
        if not root.handlers:  # Python's last resort shows warnings only
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(FORMAT))
            root.addHandler(handler)
        _replaced.append(_SetUp(root.level, handler))
    root.setLevel(level.upper())
