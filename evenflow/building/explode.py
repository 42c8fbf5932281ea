"""Makes the operator of `Stream.explode`."""

from __future__ import annotations

from typing import Any

from ..engine.errors import FlowError
from ..engine.operators.rows.explode import Explode


def explode_operator(column: Any, position: Any) -> Explode:
    """The operator. Raises FlowError unless `column` is a name, and `position` another one or None."""
    if not isinstance(column, str):
        raise FlowError(f'explode({column!r:.200}): give the name of a column of lists, for example explode("bids")')
    if position is not None and not isinstance(position, str):
        raise FlowError(f'explode(position={position!r:.200}): expected the name of a new column, for example position="rank"')
    return Explode(column, position)
