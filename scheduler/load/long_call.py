"""A call that a worker's thread has been in for long, such as a user's function that waits for a service."""

from __future__ import annotations

from dataclasses import dataclass

LONG_SECONDS = 5.0
"""Seconds after which a call is long, and a job without rows stands still."""


@dataclass(frozen=True, slots=True)
class LongCall:
    """A call of `seconds` so far. `operator`: whose work it is, empty if unknown.

    `stack`: its frames from the outermost on, each as `function (file:line)`. They have no values, so they contain no rows.
    `answered`: False if the worker's process does not answer, so that nothing more is known.
    """

    seconds: float
    operator: str = ""
    stack: tuple[str, ...] = ()
    answered: bool = True
