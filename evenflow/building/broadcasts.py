"""Makes broadcast streams, and the operator that reads one."""

from __future__ import annotations

from typing import Any

from ..engine.errors import FlowError
from ..engine.expressions.expression import Expression
from ..engine.operators.processing.broadcast_process import BroadcastProcess
from ..engine.operators.processing.process import Process
from ..engine.operators.rows.broadcast import Broadcast
from ..engine.updates import Updates


def make_broadcast(columns: tuple[Any, ...], delete: Any, version: Any, updates: Updates | None) -> Broadcast:
    """Make `broadcast`; `updates`: those of its input. Raises FlowError for wrong columns or a wrong condition."""
    if not columns or not all(isinstance(name, str) for name in columns):
        raise FlowError(
            f'broadcast{columns!r:.200}: name the key columns, as in .broadcast("name"): each worker keeps the newest row of each key, '
            "and without one the rows would pile up"
        )
    if delete is not None and not isinstance(delete, Expression):
        raise FlowError(f'broadcast(delete={delete!r:.200}): expected a condition, for example delete=ef.col("op") == "delete"')
    if version is not None and not isinstance(version, str):
        raise FlowError(f"broadcast(version={version!r:.200}): expected the name of a column that rises with each change of a row")
    if updates is not None and updates.key and set(updates.key) != set(columns):
        raise FlowError(
            f"broadcast{columns!r:.200}: the rows are updates by {', '.join(updates.key)}, so a key of other columns would keep rows that "
            f"were replaced: broadcast them by {', '.join(updates.key)}"
        )
    if updates is not None and version is None:
        raise FlowError(
            f"broadcast{columns!r:.200}: the rows are updates, which overtake one another when keys move, so that an older one could stay: "
            'name a column that rises with each update, as in .aggregate(n=ef.count(), ...).broadcast("key", version="n")'
        )
    return Broadcast(columns, delete, version)


def with_broadcast(process: Process, broadcast: Broadcast) -> BroadcastProcess:
    """Return the operator that also reads the rows of `broadcast`."""
    given = process.keys, process.function, process.schema, process.on_error, process.rows
    return BroadcastProcess(*given, broadcast_keys=broadcast.keys, version=broadcast.version)
