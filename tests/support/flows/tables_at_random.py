"""Tables of the state of simulated jobs, read from the newest checkpoint at random moments, and what they must hold.

One worker reads all rows in their order. So a checkpoint's state is that after some number of rows, the same for all keys and
operators: the position of the source in that checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import evenflow as ef
from evenflow.connectors.share import Share
from evenflow.engine.errors import RequestError
from evenflow.reads import table_of
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowTable
from evenflow.state.errors import CorruptStateError, StoreUnavailableError
from evenflow.testing import Choice
from evenflow.testing.simulation.actions import COORDINATOR
from evenflow.testing.simulation.network import SimulationError

ROWS = [{"key": number * 7 % 5, "seq": number, "ts": number} for number in range(60)]
LIFE = 8
"""Seconds after which a state expires."""


class Seen(ef.KeyedFunction):
    n = ef.value_state(0)
    numbers = ef.list_state()
    last = ef.value_state(ttl=f"{LIFE}s")

    def on_row(self, key, row, context):
        self.n += 1
        self.numbers.append(row["seq"])
        if row["seq"] % 2:
            self.last = row["seq"]
        if self.n % 5 == 0:
            del self.n, self.last
            self.numbers.clear()


def forgetful(state: Any, row: dict[str, Any]) -> Any:
    """Count and add up the rows of a key, and forget the key with every fourth."""
    n, total = state or (0, 0)
    return (None if n == 3 else (n + 1, total + row["seq"])), {"key": row["key"]}


def tabled() -> ef.Dataflow:
    """Return a flow with aggregates, a `stateful_map` and a `process` of the same rows."""
    flow = ef.Dataflow("tabled")
    keyed = flow.read(ef.from_items(ROWS, event_time="ts", unit="s")).parallelism(1).key_by("key")
    sums = keyed.aggregate(n=ef.count(), total=ef.sum("seq"), emit="update").named("sums")
    sums.key_by("n").aggregate(keys=ef.count()).named("sizes").write(ef.to_list([], name="to_sizes"))
    keyed.aggregate(n=ef.count(), last=ef.max("seq"), emit="final").named("ends").write(ef.to_list([], name="to_ends"))
    keyed.stateful_map(forgetful).named("pairs").write(ef.to_list([], name="to_pairs"))
    keyed.process(Seen()).named("seen").write(ef.to_list([], name="to_seen"))
    return flow


def states(rows: list[dict[str, Any]], step: Callable[[Any, dict[str, Any]], Any]) -> dict[Any, Any]:
    """Return the states of all keys after `rows`."""
    found: dict[Any, Any] = {}
    for row in rows:
        found[row["key"]] = step(found.get(row["key"]), row)
    return {key: state for key, state in found.items() if state is not None}


def seen(state: Any, row: dict[str, Any]) -> Any:
    n, numbers, last = state or (0, [], None)
    return None if n == 4 else (n + 1, [*numbers, row["seq"]], row["seq"] if row["seq"] % 2 else last)


def expected(operator: str, rows: list[dict[str, Any]], watermark: int) -> list[tuple[Any, ...]]:
    """Return the rows of a table after these rows of the source, at this event time of the operator (in microseconds)."""
    sums = states(rows, lambda state, row: ((state or (0, 0))[0] + 1, (state or (0, 0))[1] + row["seq"]))
    match operator:
        case "sums":
            return [(key, n, total) for key, (n, total) in sums.items()]
        case "ends":
            return [(key, n, max(row["seq"] for row in rows if row["key"] == key)) for key, (n, _) in sums.items()]
        case "sizes":
            numbers = [n for n, _ in sums.values()]
            return [(n, numbers.count(n)) for n in set(numbers)]
        case "pairs":
            return [(key, list(state)) for key, state in states(rows, lambda state, row: forgetful(state, row)[0]).items()]
    live = states(rows, seen)
    return [
        (key, n, numbers, last if last is not None and (last + LIFE) * 1_000_000 > watermark else None)
        for key, (n, numbers, last) in live.items()
    ]


class Tables:
    """An action that reads the table of a random operator every now and then, and compares it with `expected`. `read`: the tables so far,
    by operator; `lost`: those whose files were gone.
    """

    def __init__(self):
        self.read = dict.fromkeys(("sums", "ends", "sizes", "pairs", "seen"), 0)
        self.filled = self.lost = 0

    def __call__(self, world):
        state = world.coordinator.core.state
        if state is not JobState.STARTING and not state.final and world.random.random() < 0.3:
            yield Choice(COORDINATOR, "read a table", self._read, (world,))

    def _read(self, world):
        operator = world.random.choice(list(self.read))
        newest = world.coordinator.core.record.checkpoints.newest
        try:
            found = world.coordinator.ask(ShowTable(operator))
        except RequestError as error:
            if "has processed the end" not in str(error):
                raise
            return
        if found is None:
            return
        try:
            table = table_of(found, world.coordinator.storage.files)
        except (CorruptStateError, StoreUnavailableError):
            self.lost += 1
            return
        (source,) = newest.tasks["from_items"]
        rows = ROWS[: min(Share.decode(source.position["share"]).lowest, len(ROWS))]
        got = sorted(tuple(row.values()) for row in table.to_pylist())
        marks = {entry.watermark for entry in found.entries}
        allowed = [sorted(expected(operator, rows, mark)) for mark in marks]
        if got not in allowed:
            raise SimulationError(f"checkpoint {found.checkpoint} after {len(rows)} rows: `{operator}` is {got}, and must be {allowed}")
        self.read[operator] += 1
        self.filled += len(got) > 0
