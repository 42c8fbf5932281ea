"""Going on from an older checkpoint than the newest that was committed: the sinks take back what has come since.

Invariant: no sink retracts unless all sinks can, or the job allows duplicates; and no job ever continues from a checkpoint behind
which something was taken back.
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
    """Have the sinks (by operator) undo what was committed behind checkpoint `after`, up to `committed`, which is damaged or gone.

    Returns what is to be delivered for it, by operator.

    Raises JobFailedError naming a sink that can't, and what the choices are; and whatever a sink raises.
    """
    begin = f"checkpoint {after}" if after else "the beginning"
    unable = [name for name, sink in sinks.items() if not sink.retractable]
    if unable and not allow_duplicates:
        raise JobFailedError(
            f"job `{job}`: checkpoint {committed}, its newest, is damaged or gone, and it would go on from {begin}, but sink `{unable[0]}` "
            "can't take back what it has committed since, so rows would come twice. Put the checkpoint's files back and begin from its "
            "folder, flow.run(from_savepoint=...); or remove those rows and begin from the older one's folder; or accept duplicates, "
            "CheckpointConfig(allow_duplicates=True)"
        )
    _LOG.warning("job `%s`: checkpoint %d, its newest, is damaged or gone; it goes on from %s", job, committed, begin)
    for name in unable:
        _LOG.warning("job `%s`: rows that sink `%s` has committed behind checkpoint %d come again", job, name, after)
    saved.declare_void(after)
    return [(name, payload) for name, sink in sinks.items() if sink.retractable for payload in sink.retract(after)]
