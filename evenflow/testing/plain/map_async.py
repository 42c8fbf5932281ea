"""`map_async`, row by row: teaches the oracle the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ...engine.functions.function_class import made
from ...engine.operators.rows.map_async import MapAsync
from .oracle import Records, by_row, evaluate


@evaluate.register
def _(operator: MapAsync, inputs: Sequence[Records]) -> Records:
    """One after the other, each to its end."""
    function = made(operator.function, "map_async")

    async def awaited(row: dict[str, Any]) -> Any:
        return await function(row)

    return by_row(operator, inputs[0].items, lambda row: [asyncio.run(awaited(row))], operator.schema)
