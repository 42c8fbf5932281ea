"""Tells if a running operator can take state from a worker that runs other code, in either direction, without a start of the job.

A start may discard state and begin with empty parts, if the user allows it. Nothing is allowed here: the state is read completely, or not.

>>> old = StateDescription("a process", {"keys": "user"}, {"n": "value"}, "state")
>>> new = replace(old, parts={"n": "list"}, version=StateVersion(2, "Visits", migrates=True))
>>> readable(old, old).how, readable(old, new).how, readable(new, old).how
('same', 'migrated', 'unreadable')
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .state_description import StateDescription, compared
from .state_version import StateVersion


@dataclass(frozen=True, slots=True)
class Readable:
    """The way in which code reads state that other code wrote: as it is, converted when it is installed, or not; `why` not."""

    how: Literal["same", "migrated", "unreadable"]
    why: str = ""


def readable(written: StateDescription, reading: StateDescription) -> Readable:
    """Return how an operator described as `reading` reads chunks of the operator described as `written`."""
    written = replace(written, fields={}, closed=frozenset(), version=StateVersion(written.version.number))  # as a manifest has it
    found = compared(written, reading)
    reasons = [*found.unfit, *(f"{part} is new" for part in found.new), *(f"{part} is gone" for part in found.lost)]
    if found.version is not None:
        reasons.append(found.version)
    if not reasons and reading.noun != "state" and list(written.parts) != list(reading.parts):
        reasons.append(f"its parts were {', '.join(written.parts)}, and are {', '.join(reading.parts)}")
    if reasons:
        return Readable("unreadable", "; ".join(reasons))
    renamed = any(former in written.parts for former in reading.version.renamed.values())
    return Readable("migrated" if renamed or written.version.number < reading.version.number else "same")
