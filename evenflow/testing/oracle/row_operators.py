"""Row operators in plain Python, for the oracle: `branch`, `explode`, `map_async`, `deduplicate`, `lookup`, `with_time` and so on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from ...engine.errors import FlowError
from ...engine.expressions.expression import Expression
from ...engine.functions.function_class import made
from ...engine.operators.joins.lookup import Lookup
from ...engine.operators.processing.deduplicate import Deduplicate
from ...engine.operators.rows.branch import OTHERWISE, Branch
from ...engine.operators.rows.changelog import INSERT, Changelog
from ...engine.operators.rows.explode import Explode
from ...engine.operators.rows.map_async import MapAsync
from ...engine.operators.rows.with_arrival_time import WithArrivalTime
from ...engine.operators.rows.with_time import WithTime
from ...engine.source import Source
from .expressions import is_true
from .oracle import EPOCH, Record, Records, Row, by_row, evaluate, key_of, letter_of, read

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0.001}


@evaluate.register
def _(operator: Branch, inputs: Sequence[Records]) -> Records:
    stream, predicate = inputs[0], made(operator.predicate, "branch")
    kept, others, refused = list[Record](), list[Record](), list[Record]()
    if isinstance(predicate, Expression):
        for record in stream.items:
            (kept if is_true(predicate.tree, record.row) else others).append(record)
    else:
        for record in stream.items:
            try:
                (kept if predicate(dict(record.row)) else others).append(record)
            except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
                refused.append(letter_of(operator, None, record.row, record.time, error))
    return Records(kept, stream.schema, refused, {OTHERWISE: Records(others, stream.schema)})


@evaluate.register
def _(operator: Changelog, inputs: Sequence[Records]) -> Records:
    """Insert the last rows; the changes before them, which depend on the cuts between batches, add up to nothing."""
    return Records([Record({**record.row, operator.op: INSERT}, record.time) for record in inputs[0].items])


@evaluate.register
def _(operator: Explode, inputs: Sequence[Records]) -> Records:
    return Records([Record(row, record.time) for record in inputs[0].items for row in _exploded(record.row, operator)])


def _exploded(row: Row, operator: Explode) -> list[Row]:
    rows = []
    for number, element in enumerate(row[operator.column] or (), 1):
        rest = {name: value for name, value in row.items() if name != operator.column}
        numbered = {} if operator.position is None else {operator.position: number}
        rows.append(rest | numbered | (element if isinstance(element, dict) else {operator.column: element}))
    return rows


@evaluate.register
def _(operator: MapAsync, inputs: Sequence[Records]) -> Records:
    """Await each coroutine in turn."""
    function = made(operator.function, "map_async")

    async def awaited(row: dict[str, Any]) -> Any:
        return await function(row)

    return by_row(operator, inputs[0].items, lambda row: [asyncio.run(awaited(row))], operator.schema)


@evaluate.register
def _(operator: Deduplicate, inputs: Sequence[Records]) -> Records:
    """Deduplicate by arrival, so a job's rows of a key must arrive in one order."""
    until: dict[tuple[Any, ...], int | None] = {}
    items = list[Record]()
    for record in inputs[0].items:
        key = key_of(record.row, operator.keys)
        end = until.get(key)
        if key not in until or (end is not None and record.time is not None and record.time >= end):
            until[key] = None if operator.ttl is None or record.time is None else record.time + operator.ttl
            items.append(record)
    return Records(items, inputs[0].schema)


@evaluate.register
def _(operator: Lookup, inputs: Sequence[Records]) -> Records:
    if isinstance(operator.table, Source):
        table = [record.row for record in read(operator.table).items]
        names = list(table[0])
    else:
        whole = operator.table if isinstance(operator.table, pa.Table) else operator.table()
        table, names = whole.to_pylist(), whole.column_names
    keys = tuple(operator.on.values())
    added = operator.columns if operator.columns is not None else [name for name in names if name not in keys]
    items = list[Record]()
    for record in inputs[0].items:
        key = key_of(record.row, operator.on)
        matches = [row for row in table if key_of(row, keys) == key and None not in key]
        if not matches and operator.how == "left":
            matches = [dict.fromkeys(names)]
        renamed = {name: name + operator.suffix if name in record.row else name for name in added}
        items += [Record({**record.row, **{new: row[old] for old, new in renamed.items()}}, record.time) for row in matches]
    return Records(items)


@evaluate.register
def _(operator: WithTime, inputs: Sequence[Records]) -> Records:
    items, refused = list[Record](), list[Record]()
    for record in inputs[0].items:
        try:
            value = record.row[operator.time] if isinstance(operator.time, str) else operator.time(dict(record.row))
            items.append(Record(record.row, _time(value, operator.unit)))
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            refused.append(letter_of(operator, None, record.row, record.time, error))
    return Records(items, inputs[0].schema, refused)


@evaluate.register
def _(_operator: WithArrivalTime, inputs: Sequence[Records]) -> Records:
    """Let all rows arrive at once: results that depend on arrival times agree with no oracle."""
    return Records([Record(record.row, 0) for record in inputs[0].items], inputs[0].schema)


def _time(value: Any, unit: str) -> int:
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - EPOCH) // timedelta(microseconds=1)
    if not isinstance(value, (int, float)):
        raise FlowError(f"{value!r} is no time")
    return round(value * _MICROSECONDS[unit]) if unit != "ns" else int(value) // 1_000
