"""Continuing from a checkpoint older than the newest committed one: the sinks retract later output.

Invariant: no sink retracts unless all sinks can, or the job allows duplicates; and no job ever continues from a checkpoint whose
output was retracted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ...engine.errors import JobFailedError
from ...engine.sink import Sink
from ..task.saved_state import SavedState

_LOG = logging.getLogger(__name__)


def retract(
    job: str, after: int, committed: int, sinks: Mapping[str, Sink], saved: SavedState, *, allow_duplicates: bool
) -> list[tuple[str, Any]]:
    """Let the sinks (by operator) undo their commits after checkpoint `after`, up to `committed`, which is damaged or missing.

    Returns the resulting deliveries, by operator. Raises JobFailedError naming a sink that can't retract, and the alternatives;
    and any error of a sink.
    """
    begin = f"checkpoint {after}" if after else "the beginning"
    unable = [name for name, sink in sinks.items() if not sink.retractable]
    if unable and not allow_duplicates:
        raise JobFailedError(
            f"job `{job}`: checkpoint {committed}, its newest, is damaged or missing, and it would continue from {begin}, but sink "
            f"`{unable[0]}` can't retract what it has committed since, so rows would be repeated. Restore the checkpoint's files and "
            "begin from its folder, flow.run(from_savepoint=...); or remove those rows and begin from the older one's folder; or "
            "accept duplicates, CheckpointConfig(allow_duplicates=True)"
        )
    _LOG.warning("job `%s`: checkpoint %d, its newest, is damaged or missing; it continues from %s", job, committed, begin)
    for name in unable:
        _LOG.warning("job `%s`: rows that sink `%s` has committed after checkpoint %d will be repeated", job, name, after)
    saved.declare_void(after)
    return [(name, payload) for name, sink in sinks.items() if sink.retractable for payload in sink.retract(after)]
