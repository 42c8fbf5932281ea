"""Reads of keys at random moments of simulated jobs, and the values that they may have.

A read takes place at some moment between its request and its answer. So its value must be one that the key had in that time: the last one
before the request, or a later one. When a job goes back to a checkpoint, a key's value may be any earlier one until its next record.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import evenflow as ef
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ReadKey
from evenflow.testing import Choice
from evenflow.testing.oracle.oracle import oracle
from evenflow.testing.simulation.actions import COORDINATOR
from evenflow.testing.simulation.network import SimulationError

KEYS, ROWS = 5, 60


class History:
    """The values that each key has had, oldest first, over all attempts of a job."""

    def __init__(self):
        self.values: dict[Any, list[Any]] = defaultdict(list)
        self.restored: dict[Any, int] = defaultdict(int)
        self.restores = 0

    def restore(self):
        """Note that all keys have an earlier value again."""
        self.restores += 1
        for key, values in self.values.items():
            self.restored[key] = len(values)

    def moment(self, key):
        """Return the present moment, for `allowed`."""
        return len(self.values[key]), self.restores

    def allowed(self, key, begun):
        """Return the values that a read may have that was requested at the moment `begun` and is answered now."""
        values, (count, restores) = self.values[key], begun
        if self.restores > restores or (self.restores and self.restored[key] >= count):
            return [None, *values]
        return [values[count - 1] if count else None, *values[count:]]

    def note(self, key, value):
        """Note the value that was read."""


class Prefixes(History):
    """The values that a key of one source's rows will have: after each of its rows, in the source's order. They are known beforehand.

    Any of them may be read, but none that is older than one that was read before.
    """

    def __init__(self, rows):
        super().__init__()
        for row in rows:
            self.values.setdefault(row["key"], [None])
            n, total = self.values[row["key"]][-1] or (0, 0)
            self.values[row["key"]].append((n + 1, total + row["seq"]))
        self._newest: dict[Any, int] = defaultdict(int)

    def restore(self):
        super().restore()
        self._newest.clear()

    def moment(self, key):
        return self._newest[key], self.restores

    def allowed(self, key, begun):
        newest, restores = begun
        return (self.values[key] or [None])[newest if restores == self.restores else 0 :]

    def note(self, key, value):
        self._newest[key] = (self.values[key] or [None]).index(value)


class Reads:
    """An action that reads a random key of `operator` every now and then, one at a time, and checks the values.

    `value(answer)`: the value as the history has it. `answers` so far; `seen`: how many had a value.
    """

    def __init__(self, history, operator, value=lambda answer: answer):
        self.history, self._operator, self._value = history, operator, value
        self.answers = self.seen = 0
        self._wanted = self._begun = None
        self._source = None

    def __call__(self, world):
        source = world.workers["generate-0"] if world.workers else self._source  # the worker that never leaves
        if self._source is not None and source is not self._source:
            self.history.restore()
        self._source = source
        if world.coordinator.core.state is not JobState.STARTING and not world.coordinator.core.state.final and world.random.random() < 0.3:
            yield Choice(COORDINATOR, "read", self._ask, (world,))

    def _ask(self, world):
        if self._wanted is None:
            key = world.random.randrange(KEYS + 1)
            self._wanted, self._begun = ReadKey(self._operator, key, str(world.random.random())), self.history.moment(key)
        answer = world.coordinator.ask(self._wanted)
        if answer is None:
            return
        key, self._wanted = self._wanted.key, None
        found = None if answer.value is None else self._value(answer.value.value())
        allowed = self.history.allowed(key, self._begun)
        if found not in allowed:
            raise SimulationError(f"key {key} of `{self._operator}` was read as {found}, and it had the values {allowed} meanwhile")
        self.history.note(key, found)
        self.answers += 1
        self.seen += found is not None


def counted_in_order(history: History) -> ef.Dataflow:
    """Return a flow whose `stateful_map` notes every state that it makes: how many rows there were, and the sum of their numbers."""

    def count(state: Any, row: dict[str, Any]) -> Any:
        n, total = state or (0, 0)
        state = (n + 1, total + row["seq"])
        history.values[row["key"]].append(state)
        return state, {"key": row["key"], "n": n + 1}

    flow = ef.Dataflow("counted")
    rows = flow.read(ef.generate(total=ROWS, keys=KEYS))
    rows.key_by("key").stateful_map(count).named("count").write(ef.to_list([]))
    return flow


def totals_of_one_source(emit: str) -> ef.Dataflow:
    """Return a flow that counts and sums the rows of one source worker."""
    flow = ef.Dataflow("totals")
    rows = flow.read(ef.generate(total=ROWS, keys=KEYS)).parallelism(1)
    rows.key_by("key").aggregate(n=ef.count(), total=ef.sum("seq"), emit=emit).named("count").write(ef.to_list([]))
    return flow


def rows_of_one_source() -> list[dict[str, Any]]:
    """Return the rows of `totals_of_one_source`, in their order."""
    flow = ef.Dataflow("rows")
    flow.read(ef.generate(total=ROWS, keys=KEYS)).write(ef.to_list([]))
    return oracle(flow)["to_list"]


def n_and_total(row: dict[str, Any]) -> tuple[int, int]:
    """Return the value of a row of `totals_of_one_source`."""
    return row["n"], row["total"]
