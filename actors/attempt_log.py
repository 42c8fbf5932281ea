"""The steps of an attempt, logged at level INFO by the process that takes them: `JobConfig(log_level="info")` shows them.

The benchmark of recovery reads them back, and tells from them where the time goes.

>>> STEP.search("2026-01-02 03:04:05,678 INFO evenflow.attempts: job `j`, attempt 2, worker `count-1`: state restored").groups()
('2026-01-02 03:04:05,678', 'state restored')
"""

from __future__ import annotations

import logging
import re

from ..engine.protocol.ids import Attempt, WorkerId, attempt_name

_LOG = logging.getLogger("evenflow.attempts")

STEP = re.compile(
    r"^(\S+ \S+) INFO evenflow\.attempts: job `[^`]*`(?:, attempt [\d.]+)?, (?:coordinator|worker `[^`]*`): (.*)$", re.MULTILINE
)
"""A line of the log: its time and step."""


def note_step(job: str, attempt: Attempt | None, step: str, worker: WorkerId | None = None) -> None:
    """Log a step of an attempt, None if its number is not known yet, that the coordinator or a worker has done."""
    number = "" if attempt is None else f", attempt {attempt_name(attempt)}"
    _LOG.info("job `%s`%s, %s: %s", job, number, "coordinator" if worker is None else f"worker `{worker}`", step)
