"""Evaluates a flow row by row in plain Python: no batches, no workers, no watermarks, and none of the engine's operators.

One reader reads every source from beginning to end, and every operator then sees all rows at once in that order. So no row is late, and a
function that depends on the order of a key's rows agrees with a job only if the job keeps that order.

>>> import evenflow as ef
>>> flow = ef.Dataflow("even")
>>> _ = flow.read(ef.from_items([1, 2, 3, 4])).filter(lambda row: row["item"] % 2 == 0).write(ef.to_list([], name="even"))
>>> oracle(flow)
{'even': [{'item': 2}, {'item': 4}]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import singledispatch
from math import isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa

from ...dataflow import Dataflow
from ...engine.batch import ITEM
from ...engine.errors import FlowError
from ...engine.expressions.expression import Expression
from ...engine.functions.batch_formats import in_format, rows_of_result
from ...engine.functions.error_policy import DEAD_LETTERS, json_text
from ...engine.functions.function_class import made
from ...engine.functions.key_rows import KeyRows
from ...engine.keys.unkeyed import shown
from ...engine.operators.aggregation.aggregate_running import AggregateRunning
from ...engine.operators.aggregation.aggregate_weights import AggregateWeights
from ...engine.operators.aggregation.aggregate_windows import AggregateWindows
from ...engine.operators.function import FunctionOperator
from ...engine.operators.joins.join import Join
from ...engine.operators.joins.join_asof import JoinAsof
from ...engine.operators.joins.join_side import JoinSide
from ...engine.operators.keyed import KeyedOperator
from ...engine.operators.processing.broadcast_process import BroadcastProcess
from ...engine.operators.processing.co_process import CoProcess
from ...engine.operators.processing.process import Process
from ...engine.operators.processing.stateful_map import StatefulMap
from ...engine.operators.processing.stateful_map_columns import StatefulMapColumns
from ...engine.operators.rows.broadcast import Broadcast
from ...engine.operators.rows.cast import Cast
from ...engine.operators.rows.compute import Compute
from ...engine.operators.rows.filter import Filter
from ...engine.operators.rows.flat_map import FlatMap
from ...engine.operators.rows.key_by import KeyBy
from ...engine.operators.rows.map import Map
from ...engine.operators.rows.map_batches import MapBatches
from ...engine.operators.rows.project import Project
from ...engine.operators.rows.table_rows import NEWEST, TableRows
from ...engine.operators.rows.union import Union
from ...engine.operators.two_inputs import LATE
from ...engine.operators.weighed import Weighed
from ...engine.plan.columns import check_columns
from ...engine.plan.graph import Graph, Node
from ...engine.plan.weights import with_weights
from ...engine.sink import Sink
from ...engine.source import Source
from ...engine.table_changes import DELETED, OFFSET, PARTITION
from ...engine.time.windows import Windows
from ...engine.types.casting import cast
from ...engine.weights import WEIGHT, WEIGHTS
from .aggregates import aggregated
from .expressions import is_true, value_of
from .joins import joined, joined_asof
from .process import Call, processed

Row = dict[str, Any]

MAX_ROWS = 1_000_000
MAX_POLLS = 100_000
"""The most rows, and the most empty polls, of a source; one with more counts as unbounded."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """A row and its event time in microseconds, None without event time."""

    row: Row
    time: int | None


@dataclass(frozen=True, slots=True)
class Records:
    """A whole stream; `schema` is set if the source's column types are still those of the rows.

    `refused`: the records that its operator refused, as dead letters without the operator's name. `ports`: the streams at outputs other
    than "out".
    """

    items: list[Record]
    schema: pa.Schema | None = None
    refused: list[Record] = field(default_factory=list)
    ports: Mapping[str, Records] = field(default_factory=dict)


def oracle(flow: Dataflow) -> dict[str, list[Row]]:
    """Return the rows of every sink, by the sink's operator name.

    Running aggregates with `emit="update"` emit an update per row. Raises FlowError for a flow that can't run, whose results depend on the
    cuts between batches, or that has a source without an end.
    """
    flow.graph.check()
    graph = with_weights(flow.graph)
    inputs_known = check_columns(graph)
    streams: dict[tuple[int, str], Records] = {}
    sinks: dict[str, list[Row]] = {}
    for node in graph.ordered():
        inputs = [streams[edge.node, edge.port] for edge in node.inputs]
        if isinstance(node.operator, Sink):
            sinks[node.name] = [dict(record.row) for record in inputs[0].items]
            continue
        _refuse_updates(graph, node)
        known = inputs_known.get(node.name, ())
        records = read(node.operator) if isinstance(node.operator, Source) else evaluate(node.operator.knowing(known), inputs)
        streams[node.id, "out"] = records
        streams |= {(node.id, port): Records([]) for port in ("late", *LATE.values())}
        streams.update({(node.id, port): stream for port, stream in records.ports.items()})
        letters = [Record({"operator": node.name, **letter.row}, letter.time) for letter in records.refused]
        streams[node.id, DEAD_LETTERS] = Records(letters)
    return sinks


def read(source: Source) -> Records:
    """Read everything from a source, in the order of one reader."""
    reader, items, schema, polls = source.reader(0, 1), list[Record](), None, 0
    while not reader.finished:
        batch = reader.poll(MAX_ROWS)
        polls += 1
        if len(items) > MAX_ROWS or polls > MAX_POLLS:
            raise FlowError(f"source `{source.name}` does not end: it gave {len(items)} rows in {polls} polls; give it an end, and no pace")
        if batch is not None:
            times = [None] * batch.num_rows if batch.times is None else batch.times.tolist()
            items += [Record(row, time) for row, time in zip(batch.rows.to_pylist(), times, strict=True)]
            schema = batch.rows.schema
    reader.close()
    return Records(items, schema)


@singledispatch
def evaluate(operator: Any, inputs: Sequence[Records]) -> Records:  # noqa: ARG001 -- those that know the operator use them
    """Evaluate an operator for whole inputs. Register a function here to add an operator to the oracle."""
    raise FlowError(f"the oracle does not know {type(operator).__name__}: register how it is evaluated with evaluate.register")


def by_row(
    operator: FunctionOperator, records: Iterable[Record], function: Callable[[Row], Iterable[Any]], schema: pa.Schema | None
) -> Records:
    """Return the results of `function` for each row, and the refused rows if the operator may drop them."""
    items, refused = [], list[Record]()
    for record in records:
        try:
            items += [Record(_fitting(_row(result), schema), record.time) for result in function(dict(record.row))]
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            refused.append(letter_of(operator, None, record.row, record.time, error))
    return Records(items, schema, refused)


def letter_of(operator: FunctionOperator, key: Any, row: Row, time: int | None, error: Exception) -> Record:
    """Make the dead letter of a row. Raise the error itself if it stops the job."""
    if operator.on_error == "stop":
        raise error
    letter = {
        "key": json_text(key) if isinstance(operator, KeyedOperator) else None,
        "record": json_text(row),
        "error": type(error).__name__,
        "message": str(error),
    }
    return Record(letter, time)


@evaluate.register
def _(operator: Map, inputs: Sequence[Records]) -> Records:
    function = made(operator.function, "map")
    return by_row(operator, inputs[0].items, lambda row: [function(row)], operator.schema)


@evaluate.register
def _(operator: FlatMap, inputs: Sequence[Records]) -> Records:
    function = made(operator.function, "flat_map")
    return by_row(operator, inputs[0].items, lambda row: list(function(row)), operator.schema)


@evaluate.register
def _(operator: Filter, inputs: Sequence[Records]) -> Records:
    stream, predicate = inputs[0], made(operator.predicate, "filter")
    if isinstance(predicate, Expression):
        return Records([record for record in stream.items if is_true(predicate.tree, record.row)], stream.schema)
    return by_row(operator, stream.items, lambda row: [dict(row)] if predicate(row) else [], stream.schema)


@evaluate.register
def _(operator: Compute, inputs: Sequence[Records]) -> Records:
    def computed(row: Row) -> Row:
        kept = tuple(row) if operator.select is None else (name for name in operator.select if name != WEIGHT)
        return {name: row[name] for name in kept} | {name: value_of(tree, row) for name, tree in operator.computed.items()}

    return Records([Record(computed(record.row), record.time) for record in inputs[0].items])


@evaluate.register
def _(operator: MapBatches, inputs: Sequence[Records]) -> Records:
    """Evaluate all rows at once, or row by row if some may be refused: the comparison includes that the function returns the same."""
    stream, called = inputs[0], made(operator.function, "map_batches")

    def function(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows_of_result(called(in_format(rows, operator.format)))

    if not stream.items:
        return Records([])
    if operator.on_error != "stop":
        return by_row(operator, stream.items, lambda row: _columns(function, Records([Record(row, None)], stream.schema)).to_pylist(), None)
    table = _columns(function, stream)
    if operator.time is not None:
        times: list[int | None] = table[operator.time].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    else:
        times = [r.time for r in stream.items] if table.num_rows == len(stream.items) else [None] * table.num_rows
    return Records([Record(row, time) for row, time in zip(table.to_pylist(), times, strict=True)], table.schema)


def _columns(function: Callable[[pa.RecordBatch], pa.RecordBatch], stream: Records) -> pa.Table:
    return pa.Table.from_batches([function(table_of(stream).combine_chunks().to_batches()[0])])


@evaluate.register
def _(operator: Project, inputs: Sequence[Records]) -> Records:
    rename = operator.rename or {}

    def project(row: Row) -> Row:
        kept = tuple(row) if operator.select is None else (name for name in operator.select if name != WEIGHT)
        return {rename.get(name, name): row[name] for name in kept if name not in operator.drop}

    return Records([Record(project(r.row), r.time) for r in inputs[0].items])


@evaluate.register
def _(operator: Cast, inputs: Sequence[Records]) -> Records:
    def converted(row: Row) -> Row:
        return {**row, **{name: cast(pa.array([row[name]]), kind)[0].as_py() for name, kind in operator.types.items()}}

    return Records([Record(converted(r.row), r.time) for r in inputs[0].items])


@evaluate.register
def _(_operator: Union, inputs: Sequence[Records]) -> Records:
    return Records([record for stream in inputs for record in stream.items], inputs[0].schema)


@evaluate.register
def _(operator: KeyBy, inputs: Sequence[Records]) -> Records:
    return Records([Record({**r.row, operator.column: operator.function(dict(r.row))}, r.time) for r in inputs[0].items])


@evaluate.register
def _(operator: StatefulMap, inputs: Sequence[Records]) -> Records:
    states: dict[Any, Any] = {}
    items, refused = [], list[Record]()
    for record in inputs[0].items:
        key = _argument(key_of(record.row, operator.keys))
        try:
            state, result = operator.function(deepcopy(states.get(key)), dict(record.row))
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            refused.append(letter_of(operator, key, record.row, record.time, error))
            continue
        states[key] = state
        if result is not None:
            items.append(Record(_row(result), record.time))
    return Records(items, operator.schema, refused)


@evaluate.register
def _(operator: Process, inputs: Sequence[Records]) -> Records:
    return _processed(operator, _calls("on_row", operator.keys, inputs[0]))


@evaluate.register
def _(operator: Broadcast, inputs: Sequence[Records]) -> Records:
    newest: dict[tuple[Any, ...], Record] = {}
    version = operator.version
    for record in inputs[0].items if version is None else sorted(inputs[0].items, key=lambda record: record.row[version]):
        key = key_of(record.row, operator.keys)
        if operator.delete is not None and is_true(operator.delete.tree, record.row):
            newest.pop(key, None)
        else:
            newest[key] = record
    return Records(list(newest.values()))


@evaluate.register
def _(operator: BroadcastProcess, inputs: Sequence[Records]) -> Records:
    """Evaluate with all broadcast rows: a function that reads rows before the last ones have arrived agrees with no oracle."""
    newest = {_argument(key_of(record.row, operator.broadcast_keys)): record.row for record in inputs[1].items}
    return _processed(operator, _calls("on_row", operator.keys, inputs[0]), newest)


@evaluate.register
def _(operator: CoProcess, inputs: Sequence[Records]) -> Records:
    """Evaluate all of left, then all of right: a function whose results depend on their interleaving agrees with no oracle."""
    left, right = inputs
    return _processed(operator, [*_calls("on_left", operator.left_keys, left), *_calls("on_right", operator.right_keys, right)])


def _calls(method: str, keys: tuple[str, ...], stream: Records) -> list[Call]:
    return [(method, _argument(key_of(record.row, keys)), record.row, record.time) for record in stream.items]


def _processed(operator: Process, calls: Sequence[Call], broadcast: Mapping[Any, Row] | None = None) -> Records:
    refused: list[Record] = []

    def refuse(key: Any, row: Row, time: int | None, error: Exception) -> None:
        refused.append(letter_of(operator, key, row, time, error))

    results = [Record(_row(result), time) for result, time in processed(operator.function, calls, refuse, broadcast)]
    return Records(results, operator.schema, refused)


@evaluate.register
def _(operator: StatefulMapColumns, inputs: Sequence[Records]) -> Records:
    """Evaluate row by row: the comparison includes that the function returns the same for several rows at once."""
    stream, items, refused = inputs[0], list[Record](), list[Record]()
    states: dict[Any, dict[str, Any]] = {}
    for record in stream.items:
        key = key_of(record.row, operator.keys)
        state = states.get(key) or {name: np.zeros(1, dtype) for name, dtype in operator.state.items()}
        table = table_of(Records([record], stream.schema))
        names = operator.columns if operator.columns is not None else table.schema.names
        rows = KeyRows({name: table.column(name).to_numpy() for name in names}, np.ones(1, np.int64))
        try:
            new, output = operator.function(deepcopy(state), rows)
        except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
            refused.append(letter_of(operator, _argument(key), record.row, record.time, error))
            continue
        states[key] = {name: np.array(new[name], dtype) for name, dtype in operator.state.items()}
        if output is not None:
            items += [Record(row, record.time) for row in pa.table({n: pa.array(c) for n, c in output.items()}).to_pylist()]
    return Records(items, refused=refused)


@evaluate.register
def _(operator: AggregateWindows, inputs: Sequence[Records]) -> Records:
    groups: dict[tuple[int, tuple[Any, ...]], list[Record]] = {}
    for record in inputs[0].items:
        if record.time is None:
            raise FlowError("windows need event time: give the source event_time=")
        for start in window_starts(record.time, operator.windows):
            groups.setdefault((start, key_of(record.row, shown(operator.keys))), []).append(record)
    items = []
    for (start, _), records in groups.items():
        end = start + operator.windows.size
        bounds = {"window_start": EPOCH + timedelta(microseconds=start), "window_end": EPOCH + timedelta(microseconds=end)}
        items.append(Record({**_keys(records, shown(operator.keys)), **bounds, **_results(operator, records)}, end - 1))
    return Records(sorted(items, key=lambda record: record.time or 0))


@evaluate.register
def _(operator: AggregateRunning, inputs: Sequence[Records]) -> Records:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    updates = []
    for record in inputs[0].items:
        records = groups.setdefault(key_of(record.row, operator.keys), [])
        records.append(record)
        if operator.updates:
            updates.append(Record({**_keys(records, operator.keys), **_results(operator, records)}, record.time))
    return Records(updates) if operator.updates else _of_groups(operator, groups)


@evaluate.register
def _(operator: AggregateWeights, inputs: Sequence[Records]) -> Records:
    """Evaluate the rows that are left: where rows have weights, each stream is that of its last rows, once each."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in inputs[0].items:
        groups.setdefault(key_of(record.row, operator.keys), []).append(record)
    last = _of_groups(operator, groups)
    return Records(last.items, ports={WEIGHTS: last})


@evaluate.register
def _(operator: TableRows, inputs: Sequence[Records]) -> Records:
    def row_of(change: Row) -> Row:
        return {name: value for name, value in change[NEWEST][0].items() if name not in (DELETED, OFFSET, PARTITION)}

    return Records(
        [
            Record({**{name: record.row[name] for name in operator.keys}, **row_of(record.row)}, record.time)
            for record in inputs[0].items
            if not record.row[NEWEST][0][DELETED]
        ]
    )


def _of_groups(operator: AggregateRunning, groups: Mapping[tuple[Any, ...], list[Record]]) -> Records:
    return Records([Record({**_keys(records, operator.keys), **_results(operator, records)}, None) for records in groups.values()])


@evaluate.register
def _(operator: Weighed, inputs: Sequence[Records]) -> Records:
    return evaluate(operator.of, inputs)


@evaluate.register
def _(_operator: JoinSide, inputs: Sequence[Records]) -> Records:
    return inputs[0]


@evaluate.register
def _(operator: Join, inputs: Sequence[Records]) -> Records:
    return _timed_rows(joined(operator, *map(_pairs, inputs)))


@evaluate.register
def _(operator: JoinAsof, inputs: Sequence[Records]) -> Records:
    return _timed_rows(joined_asof(operator, *map(_pairs, inputs)))


def _pairs(stream: Records) -> list[tuple[Row, int | None]]:
    return [(record.row, record.time) for record in stream.items]


def _timed_rows(rows: Iterable[tuple[Row, int | None]]) -> Records:
    return Records(sorted((Record(row, time) for row, time in rows), key=lambda record: record.time or 0))


def window_starts(time: int, windows: Windows) -> list[int]:
    """List the starts of all windows that contain a time, by trying every one that could.

    >>> window_starts(7, Windows(size=4, slide=2))
    [4, 6]
    """
    nearest = (time - windows.offset) // windows.slide
    reach = windows.size // windows.slide + 1
    starts = [windows.offset + k * windows.slide for k in range(nearest - reach, nearest + 1)]
    return [start for start in starts if start <= time < start + windows.size]


def key_of(row: Row, keys: Iterable[str]) -> tuple[Any, ...]:
    """Return the key columns' values; a null is a value like any other, and so is NaN, which equals itself."""
    return tuple(nan if isinstance(value := row[name], float) and isnan(value) else value for name in keys)


def _argument(key: tuple[Any, ...]) -> Any:
    """Convert a key to the form that a user's function gets."""
    return key[0] if len(key) == 1 else key


def _keys(records: Sequence[Record], keys: Iterable[str]) -> Row:
    return {name: records[0].row[name] for name in keys}


def _results(operator: AggregateRunning | AggregateWindows, records: Sequence[Record]) -> Row:
    pairs = _pairs(Records(list(records)))
    return {name: aggregated(function.beside(operator.keys), pairs) for name, function in operator.functions.items()}


def _row(result: Any) -> Row:
    return dict(result) if isinstance(result, dict) else {ITEM: result}


def _fitting(row: Row, schema: pa.Schema | None) -> Row:
    """Return the row. Raises Arrow's error for a value that is not of its column's type."""
    for column in schema or ():
        pa.array([row[column.name]], column.type)
    return row


def table_of(stream: Records) -> pa.Table:
    """Convert the stream to a table."""
    return pa.Table.from_pylist([record.row for record in stream.items], schema=stream.schema)


def _refuse_updates(graph: Graph, node: Node) -> None:
    for edge in node.inputs:
        above = graph.nodes[edge.node]
        running = edge.port != WEIGHTS and isinstance(above.operator, AggregateRunning) and above.operator.updates
        if running or (edge.port == "out" and isinstance(above.operator, AggregateWindows) and not above.operator.emission.once):
            raise FlowError(
                f"operator `{node.name}` reads the updates of `{above.name}`, and how many there are depends on how the stream is cut into "
                'batches: the oracle can follow emit="final" without lateness, or updates that go straight into a sink'
            )
