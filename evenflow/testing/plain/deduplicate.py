"""`deduplicate`, row by row: teaches the oracle the operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.operators.processing.deduplicate import Deduplicate
from .oracle import Record, Records, evaluate, key_of


@evaluate.register
def _(operator: Deduplicate, inputs: Sequence[Records]) -> Records:
    """By arrival, so a job's rows of a key must come in one order."""
    until: dict[tuple[Any, ...], int | None] = {}
    items = list[Record]()
    for record in inputs[0].items:
        key = key_of(record.row, operator.keys)
        end = until.get(key)
        if key not in until or (end is not None and record.time is not None and record.time >= end):
            until[key] = None if operator.ttl is None or record.time is None else record.time + operator.ttl
            items.append(record)
    return Records(items, inputs[0].schema)
