"""Parses `FILE@TIME`, the command line's name for a moment of a recording.

>>> seconds_of("90", began=1000.0, ended=2000.0)
1090.0
>>> seconds_of("4000", began=1000.0, ended=2000.0)
Traceback (most recent call last):
    ...
evenflow.engine.errors.RequestError: the recording has 1000 s: there is no second 4000 in it
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from ..engine.errors import RequestError
from ..views.policy_snapshots import PolicySnapshots
from .file import Recording, is_recording

ALL = "all"
"""Stands for the whole recording, in place of a time."""

LOOK_BACK = 180
"""Views before a moment that it is rebuilt from: policies read two minutes at most."""


def recording_of(text: str) -> tuple[Path, str] | None:
    """Split `FILE@TIME` into the file and the time; return None if the text names another kind of file.

    Raises RequestError for a recording without a time.
    """
    path, _, time = text.rpartition("@")
    if path and is_recording(Path(path)):
        return Path(path), time
    if is_recording(Path(text)):
        raise RequestError(
            f"{text} is a recording: name a moment of it, in seconds or as a clock time: {text}@60, {text}@14:05, {text}@{ALL}"
        )
    return None


def seconds_of(text: str, began: float, ended: float) -> float:
    """Convert `TIME` to seconds since the epoch: seconds since `began`, a clock time (14:05, 14:05:30), or a date and time
    (2026-01-31T14:05).

    Clock times are those of this machine's time zone. Raises RequestError for another text, and for a time outside the recording.
    """
    try:
        time = began + float(text)
    except ValueError:
        time = _clock(text, began)
    if not began - 1 <= time <= ended + 1:
        there = f"it has {_local(began)} to {_local(ended)}" if ":" in text else f"the recording has {ended - began:.0f} s"
        raise RequestError(f"{there}: there is no {text} in it" if ":" in text else f"{there}: there is no second {text} in it")
    return time


def snapshots_at(recording: Recording, time: str) -> PolicySnapshots:
    """Rebuild the policies' snapshots of the job at `TIME`. Raises RequestError as `seconds_of` does."""
    last = recording.index_at(seconds_of(time, recording.began, recording.ended))
    snapshots = PolicySnapshots()
    for view in recording.views(max(0, last - LOOK_BACK), last):
        snapshots.add(view)
    return snapshots


def _clock(text: str, began: float) -> float:
    begin = datetime.fromtimestamp(began).astimezone()
    try:
        if "T" in text or " " in text:
            return datetime.fromisoformat(text).astimezone().timestamp()
        at = datetime.combine(begin.date(), datetime.strptime(f"{text}:00"[:8], "%H:%M:%S").time()).astimezone()  # noqa: DTZ007 -- local
    except ValueError as error:
        raise RequestError(f"{text!r} is no time: use seconds since the recording began, or a clock time such as 14:05:30") from error
    return (at if at >= begin - timedelta(minutes=1) else at + timedelta(days=1)).timestamp()


def _local(time: float) -> str:
    return datetime.fromtimestamp(time).astimezone().isoformat(sep=" ", timespec="seconds")
