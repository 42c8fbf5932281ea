"""What was found of one thing that evenflow needs or can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "advice", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`what` was looked at, and what is there (`found`). `todo`: what to do, empty if it is ok. `advice`: jobs run, but something is slower
    or left out; `missing`: jobs can't run.
    """

    what: str
    state: State
    found: str
    todo: str = ""


def ok(what: str, found: str) -> Finding:
    """All is well."""
    return Finding(what, "ok", found)


def advice(what: str, found: str, todo: str) -> Finding:
    """Jobs run all the same."""
    return Finding(what, "advice", found, todo)


def missing(what: str, found: str, todo: str) -> Finding:
    """Jobs can't run."""
    return Finding(what, "missing", found, todo)
