"""Compares simulated runs with the oracle: the same rows, each as often, in any order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeGuard

from ..dataflow import Dataflow
from ..engine.aggregates.numbers.count import Count
from ..engine.aggregates.numbers.extremes import Extreme
from ..engine.errors import FlowError
from ..engine.keys.unkeyed import shown
from ..engine.operators.aggregation.aggregate_running import AggregateRunning
from ..engine.operators.aggregation.aggregate_windows import AggregateWindows
from ..engine.operators.processing.stateful_map import StatefulFunction
from ..engine.sink import Sink
from ..scheduler.configs.job import JobConfig
from ..scheduler.protocol.effects import JobState
from .oracle.oracle import Row, key_of, oracle
from .simulation.actions import ACTIONS, Action
from .simulation.network import SimulationError
from .simulation.simulation import SimulationResult, simulate


def check(
    make_flow: Callable[[], Dataflow],
    seeds: Iterable[int],
    *,
    parallelism: int | Sequence[int] = 2,
    config: JobConfig | None = None,
    save_state: bool = False,
    actions: Sequence[Action] = ACTIONS,
) -> None:
    """Simulate the flow once for each seed; every run must finish with the rows of the oracle.

    `make_flow` makes the same flow at each call. The seed chooses one of several values of `parallelism`. Rows are compared as multisets,
    floats to 9 digits. For aggregates that emit updates or corrections, the last row of each key (and window) must be the oracle's, and
    counts and extremes must not go back; a key's updates from before and after a move arrive on two channels, so they are first sorted by
    its count, if the aggregates have one. Raises SimulationError with the differences and the seed that reproduces them; also if records
    were late, because the run decides which ones are: give the source a larger `max_delay`.

    >>> import evenflow as ef
    >>> def word_count():
    ...     flow = ef.Dataflow("words")
    ...     words = flow.read(ef.from_items(["a", "b", "a", None]))
    ...     words.key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    ...     return flow
    >>> check(word_count, seeds=range(5))
    """
    expected = oracle(make_flow())
    for seed in seeds:
        workers = parallelism if isinstance(parallelism, int) else parallelism[seed % len(parallelism)]
        flow = make_flow()
        try:
            result = simulate(flow, seed, parallelism=workers, config=config, save_state=save_state, actions=actions)
            compare(flow, workers, expected, result)
        except Exception as error:
            error.add_note(f"run it again: check(make_flow, seeds=[{seed}], parallelism={workers}, ...)")
            raise


def compare(flow: Dataflow, parallelism: int, expected: dict[str, list[Row]], result: SimulationResult) -> None:
    """Raise SimulationError with the differences between a run of `flow` and the oracle's rows, if there are any."""
    differences = [*_unfinished(result), *_differences(flow, parallelism, expected, result)]
    if differences:
        raise SimulationError("\n  ".join([f"the flow `{flow.name}` with seed {result.seed} and {parallelism} workers:", *differences]))


def _unfinished(result: SimulationResult) -> list[str]:
    late = [f"{count} records were late for `{name}`" for name, count in result.late_records.items() if count]
    return late if result.state is JobState.FINISHED else [f"the job was {result.state.value}", *late]


def _differences(flow: Dataflow, parallelism: int, expected: dict[str, list[Row]], result: SimulationResult) -> list[str]:
    differences = []
    for node in flow.graph:
        if isinstance(node.operator, Sink):
            above = flow.graph.nodes[node.inputs[0].node]
            rows, wanted = result.rows[node.name], expected[node.name]
            if (
                isinstance(above.operator, AggregateRunning)
                and above.operator.updates
                and flow.graph.updates_of(above.inputs[0]) is not None
            ):
                if result.moved:
                    raise FlowError(f'the updates of `{above.name}` lose their order when keys move, and may go back: say emit="final"')
                found = row_differences(_without_nothing(above.operator, _last_by_key(rows, above.operator.keys)), wanted)
            elif _repeats(above.operator):
                if (above.parallelism or parallelism) != (node.parallelism or parallelism):
                    raise FlowError(
                        f"the updates of `{above.name}` lose their order on the way to `{node.name}`: give both the same parallelism"
                    )
                found = update_differences(above.operator, _by_count(above.operator, rows) if result.moved else rows, wanted)
            else:
                found = row_differences(rows, wanted)
            differences += [f"sink `{node.name}`: {difference}" for difference in found]
    return differences


def row_differences(rows: Sequence[Row], expected: Sequence[Row]) -> list[str]:
    """Describe the differences of two multisets of rows; empty if they are equal.

    >>> row_differences([{"n": 1}, {"n": 1}], [{"n": 1.0}])
    ["1 row too many, the first: {'n': 1}"]
    """
    found, wanted = Counter(map(_hashable, rows)), Counter(map(_hashable, expected))
    many, few = sorted((found - wanted).elements(), key=_by_size), sorted((wanted - found).elements(), key=_by_size)
    if len(many) == len(few) and all(map(_close, many, few)):
        return []
    differences = []
    for rows_, what in ((many, "too many"), (few, "missing")):
        if rows_:
            differences.append(f"{len(rows_)} row{'s' if len(rows_) > 1 else ''} {what}, the first: {dict(rows_[0])}")
    return differences


Repeating: TypeAlias = AggregateRunning | AggregateWindows


def _repeats(operator: Any) -> TypeGuard[Repeating]:
    """Return True if there may be several rows of a key, or of a key and window, where only the last one counts."""
    return (
        operator.updates
        if isinstance(operator, AggregateRunning)
        else isinstance(operator, AggregateWindows) and not operator.emission.once
    )


def update_differences(operator: Repeating, rows: Sequence[Row], expected: Sequence[Row]) -> list[str]:
    """Describe wrong updates: a last row of a key (and window) that differs from the expected one, or a count or an extreme that goes
    back.
    """
    keys = operator.keys if isinstance(operator, AggregateRunning) else (*shown(operator.keys), "window_start")
    differences = row_differences(_last_by_key(rows, keys), _last_by_key(expected, keys))
    before: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = key_of(row, keys)
        if key in before:
            differences += [
                f"`{name}` of key {key} went from {before[key][name]} to {row[name]}" for name in _back(operator, before[key], row)
            ]
        before[key] = row
    return differences


def _without_nothing(operator: AggregateRunning, rows: Iterable[Row]) -> list[Row]:
    """Return the rows but those of groups that all rows have left."""
    nothing = {name: 0 if isinstance(function, Count) else None for name, function in operator.functions.items()}
    return [row for row in rows if {name: row[name] for name in nothing} != nothing]


def _by_count(operator: Repeating, rows: Sequence[Row]) -> list[Row]:
    counts = [name for name, function in operator.functions.items() if isinstance(function, Count) and function.column is None]
    return sorted(rows, key=lambda row: row[counts[0]]) if counts else list(rows)


def _back(operator: Repeating, before: Row, after: Row) -> list[str]:
    """List the counts and extremes that went back, or did not advance."""
    return [
        name
        for name, function in operator.functions.items()
        if not _goes_on(function, before[name], after[name], isinstance(operator, AggregateWindows))
    ]


def _goes_on(function: Any, before: Any, after: Any, may_repeat: bool) -> bool:
    if isinstance(function, Count):
        return bool(after > before if function.column is None and not may_repeat else after >= before)
    if isinstance(function, Extreme) and before is not None:
        return after is not None and bool(after >= before if function.largest else after <= before)
    return True


def _last_by_key(rows: Iterable[Row], keys: tuple[str, ...]) -> list[Row]:
    return list({key_of(row, keys): row for row in rows}.values())


def _hashable(value: Any) -> Any:
    """Convert a row to a tuple that can be counted; NaN equals itself here."""
    if isinstance(value, dict):
        return tuple(sorted((name, _hashable(item)) for name, item in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(_hashable, value))
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _by_size(row: Any) -> tuple[str, str]:
    """Return the sort key of rows: their values without the digits in which floats may differ, then with them."""
    return _rounded(row), repr(row)


def _rounded(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join(map(_rounded, value)) + ")"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _close(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_close, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return bool(left == right)


def in_order(column: str, lanes: int = 1) -> StatefulFunction:
    """Return a function for `stateful_map` that passes rows on, and fails if `column` of a key does not rise.

    The source's workers are lanes of their own: rows with equal `column` modulo `lanes` must rise among themselves. `from_items`
    and `generate` deal rows that way, with as many lanes as workers. Rows that are dealt round robin between operators lose their
    order.

    >>> check = in_order("seq", lanes=2)
    >>> state, row = check(None, {"seq": 4})
    >>> state, row = check(state, {"seq": 1})
    >>> check(state, {"seq": 2})
    Traceback (most recent call last):
        ...
    ValueError: `seq` 2 came behind 4
    """

    def check(state: Any, row: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        seen: list[int | None] = list(state) if state is not None else [None] * lanes
        value = row[column]
        before = seen[value % lanes]
        if before is not None and value <= before:
            raise ValueError(f"`{column}` {value} came behind {before}")
        seen[value % lanes] = value
        return seen, row

    return check
