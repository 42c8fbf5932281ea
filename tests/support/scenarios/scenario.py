"""A small language for runs of the handover protocol, for the files in `scenarios/`.

Two sources `clicks` feed a keyed operator `count`, whose results go to a sink; every element waits on its channel until the
scenario delivers it, so that a file decides the order of everything.

    job WORKERS                         count the clicks per user; `job WORKERS windows of SECONDS`: per user and tumbling window
    owners USER...                      who counts these users' clicks, by the routing tables of the sources
    read SOURCE USER... [until TIME]    the source reads clicks (`ann`, or `ann@12` for one at 12 s); no later one is earlier than TIME
    announce STRATEGY USER... to N      tell all of the steps that bring the users' key groups to worker N, `key:ann` that user alone;
                                        further `USER... to N` may follow
    switch SOURCE STEP                  the source routes by the table after the step
    resume SOURCE                       a paused source goes on
    deliver SENDER RECEIVER             the channel's next element arrives; `deliver SENDER RECEIVER all`: everything on it
    settle                              everything arrives, channel by channel, until nothing is under way but results; awaited state is
                                        given, and records that had been set aside for it are processed
    give WORKER                         the worker gives a chunk of state away
    replay WORKER                       the worker processes records that had been set aside until their state was here
    end SOURCE                          the source has nothing more to read
    state                               what the workers of `count` hold
    channels                            what is under way

What a command causes is written below it: `a -> b: element` for what was sent, other effects in words.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa

import evenflow as ef
from evenflow.balancer.strategies import plan_steps
from evenflow.engine.batch import Batch
from evenflow.engine.keyed_state.kinds.objects import STATE
from evenflow.engine.keys.encoding import key_groups, key_hashes
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindowsInstance
from evenflow.engine.protocol.effects import Consumed, Effect, Finished, Sent
from evenflow.engine.protocol.elements import (
    MAX_TIME,
    MIN_TIME,
    Element,
    End,
    FetchReply,
    FetchRequest,
    Marker,
    TransferEnd,
    TransferStart,
    Watermark,
)
from evenflow.engine.protocol.handover_step import Arrived, HandoverStep, partners, steps_by_worker
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.engine.protocol.state_channels import state_channel
from evenflow.engine.task.core import TaskCore
from evenflow.state.packing import unpack_value

SECOND = 1_000_000


def count(state: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    clicks = (state or 0) + 1
    return clicks, {"user": row["user"], "clicks": clicks}


class Scenario:
    """A run of the handover protocol. `run` carries out a command and returns its effects."""

    def __init__(self) -> None:
        self._commands: dict[str, Callable[..., Iterable[str]]] = {
            name: getattr(self, f"_{name}")
            for name in (
                "job", "owners", "read", "announce", "switch", "resume", "deliver", "settle", "give", "replay", "end", "state", "channels",
            )
        }  # fmt: skip
        self._version = 0

    def run(self, command: str) -> str:
        name, *words = command.split()
        return "\n".join(self._commands[name](*words)) or "nothing"

    def _job(self, workers: str, *windows: str) -> Iterable[str]:
        flow = ef.Dataflow("scenario")
        rows = flow.read(ef.from_items([], event_time="ts")).named("clicks").parallelism(2).key_by("user")
        counts = rows.window(ef.tumbling(float(windows[-1]))).aggregate(clicks=ef.count()) if windows else rows.stateful_map(count)
        counts.named("count").parallelism(int(workers)).write(ef.to_list([], name="sink"))
        plan = flow.plan(config=ef.JobConfig(key_groups=4, combine=False))
        self.names = {channel.id: (channel.sender, channel.receiver) for channel in plan.channels}
        self.numbers = {task.name: task.number for task in plan.tasks if task.stage == "count"}
        for (here, number), (there, other) in permutations(self.numbers.items(), 2):
            self.names[state_channel(number, other)] = here, there
        self.ids = {name: id_ for id_, name in self.names.items()}
        self.waiting: dict[int, deque[Element]] = {channel: deque() for channel in self.names}
        self.tasks = {task.name: TaskCore(task) for task in plan.tasks}
        self.table = plan.tables["count"]
        for task in self.tasks.values():
            task.open()
        yield ", ".join(self.tasks)

    def _owners(self, *users: str) -> Iterable[str]:
        groups = key_groups([pa.array(users)], len(self.table), "owners").tolist()
        for source in self._sources():
            owners = self.tasks[source].outputs.exchanges[0].table.owners(key_hashes([pa.array(users)], "owners")).tolist()
            yield f"{source}: " + ", ".join(f"{u} (group {g}) count-{o}" for u, g, o in zip(users, groups, owners, strict=True))

    def _read(self, source: str, *words: str) -> Iterable[str]:
        until = MIN_TIME
        if "until" in words:
            until = int(words[-1]) * SECOND
            words = words[: words.index("until")]
        clicks = [word.partition("@") for word in words]
        times = np.array([int(time or 0) * SECOND for _, _, time in clicks], np.int64)
        batch = Batch(pa.record_batch({"user": pa.array([user for user, _, _ in clicks], pa.string())}), times)
        task = self.tasks[source]
        yield from self._effects(source, [*task.polled(batch, until, 0.0), *task.idle(0.0)])

    def _announce(self, strategy: str, *words: str) -> Iterable[str]:
        steps = []
        for step in plan_steps(strategy, self.table, self._target(words), len(self.table) if strategy == "lazy" else 1):
            self._version += 1
            steps.append(HandoverStep(self._version, step.moves, step.lazy, step.pause))
            yield f"step {self._version}: " + ", ".join(map(_move, step.moves))
            self.table = self.table.after(step.moves)
        for source in self._sources():
            self.tasks[source].announce("count", steps, {})
        for index, own in steps_by_worker(steps).items():
            peers = {f"count-{other}": self.numbers[f"count-{other}"] for other in partners(index, own)}
            self.tasks[f"count-{index}"].announce("count", own, peers)

    def _target(self, words: Iterable[str]) -> RoutingTable:
        groups, keys = self.table.groups.copy(), dict(self.table.keys)
        users: list[str] = []
        rest = iter(words)
        for word in rest:
            if word != "to":
                users.append(word)
                continue
            to = int(next(rest))
            for user in users:
                column = [pa.array([user.removeprefix("key:")])]
                if user.startswith("key:"):
                    keys[int(key_hashes(column, "announce")[0])] = to
                else:
                    groups[key_groups(column, len(groups), "announce")] = to
            users = []
        return RoutingTable(groups, keys)

    def _switch(self, source: str, step: str) -> Iterable[str]:
        return self._effects(source, self.tasks[source].switch(int(step), 0.0))

    def _resume(self, source: str) -> Iterable[str]:
        task = self.tasks[source]
        return self._effects(source, [*task.resume(0.0), *task.idle(0.0)])

    def _deliver(self, sender: str, receiver: str, *everything: str) -> Iterable[str]:
        channel = self.ids[sender, receiver]
        assert self.waiting[channel], f"nothing is on its way from {sender} to {receiver}"
        for _ in range(len(self.waiting[channel]) if everything else 1):
            element = self.waiting[channel].popleft()
            yield f"{receiver} gets {self._element(channel, element)}"
            task = self.tasks[receiver]
            yield from self._effects(receiver, [*task.receive(channel, element, 0.0), *task.idle(0.0)])

    def _settle(self) -> Iterable[str]:
        while under_way := [c for c, elements in self.waiting.items() if elements and not self.names[c][1].startswith("sink")]:
            for channel in under_way:
                yield from self._deliver(*self.names[channel], "all")
            for name, task in self.tasks.items():
                while task.awaited or task.replaying:
                    yield from self._give(name) if task.awaited else self._replay(name)

    def _give(self, worker: str) -> Iterable[str]:
        return self._effects(worker, self.tasks[worker].give(0.0))

    def _replay(self, worker: str) -> Iterable[str]:
        task = self.tasks[worker]
        return self._effects(worker, [*task.replay(0.0), *task.idle(0.0)])

    def _end(self, source: str) -> Iterable[str]:
        return self._effects(source, self.tasks[source].exhausted(0.0))

    def _state(self) -> Iterable[str]:
        for name, task in self.tasks.items():
            if task.handovers is not None:
                parts = [_held(task), *_aside(task), *task.handovers.unfinished()]
                parts += [f"time {_time(task.watermark)}"] if task.watermark > MIN_TIME else []
                yield f"{name}: " + "; ".join(parts)

    def _channels(self) -> Iterable[str]:
        for channel, elements in self.waiting.items():
            if elements:
                sender, receiver = self.names[channel]
                yield f"{sender} -> {receiver}: " + ", ".join(self._element(channel, element) for element in elements)

    def _sources(self) -> list[str]:
        return [name for name in self.tasks if name.startswith("clicks")]

    def _effects(self, worker: str, effects: Iterable[Effect]) -> Iterable[str]:
        for effect in effects:
            if isinstance(effect, Sent):
                self.waiting[effect.channel].append(effect.element)
                sender, receiver = self.names[effect.channel]
                yield f"{sender} -> {receiver}: {self._element(effect.channel, effect.element)}"
            elif isinstance(effect, Consumed):
                yield f"{worker} returns the credit to {self.names[effect.channel][0]}"
            elif isinstance(effect, Arrived):
                yield f"{worker} has all of step {effect.version} from count-{effect.source} ({effect.keys} rows of state)"
            elif isinstance(effect, Finished):
                yield f"{worker} has finished"
            else:
                yield repr(effect)

    def _element(self, channel: int, element: Element) -> str:
        if isinstance(element, Batch):
            return self._batch(channel, element)
        return _WORDS[type(element)](element)

    def _batch(self, channel: int, batch: Batch) -> str:
        rows, names = batch.to_rows(), batch.rows.schema.names
        if "window_end" in names:
            return "results " + " ".join(f"{r['user']}={r['clicks']} by {r['window_end'].second}" for r in rows)
        if "clicks" in names:
            return "results " + " ".join(f"{row['user']}={row['clicks']}" for row in rows)
        if STATE in names:
            return "state " + " ".join(f"{row['user']}={unpack_value(row[STATE])}" for row in rows)
        if not self.names[channel][0].startswith("count"):
            return "clicks " + _users(batch)
        if names == ["user"]:
            return "keys " + " ".join(row["user"] for row in rows)
        operator = self.tasks[self.names[channel][1]].operators[0]
        assert isinstance(operator, AggregateWindowsInstance)
        return "state " + _partial(operator, *operator.aggregator.from_batch(batch))


_WORDS: dict[type[Any], Callable[[Any], str]] = {
    Watermark: lambda element: f"watermark {_time(element.time)}",
    Marker: lambda element: f"marker {element.version}",
    TransferStart: lambda element: f"transfer {element.version} starts",
    FetchRequest: lambda element: f"fetch request {element.number} of step {element.version}",
    FetchReply: lambda element: f"fetch reply {element.number} of step {element.version}",
    TransferEnd: lambda element: f"transfer {element.version} ends",
    End: lambda element: "end",
}


def _time(time: int) -> str:
    return "the end" if time == MAX_TIME else str(time // SECOND)


def _users(batch: Batch) -> str:
    users, times = batch.rows.column("user").to_pylist(), batch.times
    assert times is not None
    return " ".join(user if time == 0 else f"{user}@{_time(time)}" for user, time in zip(users, times.tolist(), strict=True))


def _move(move: Any) -> str:
    pieces = [f"group {group}" for group in move.groups] + ["a key of its own" for _ in move.keys]
    staying = f" without {len(move.staying)} of its keys" if move.staying else ""
    return f"{' and '.join(pieces)}{staying} from count-{move.source} to count-{move.target}"


def _held(task: TaskCore) -> str:
    operator: Any = task.operators[0]
    if isinstance(operator, AggregateWindowsInstance):
        partials = [(partial, start) for start in sorted(operator.state.starts()) for partial in operator.state.window([start])]
        return " ".join(_partial(operator, partial, np.full(len(partial), start)) for partial, start in partials) or "no state"
    return " ".join(f"{user}={state}" for user, state in sorted(operator.state.backend.objects.items())) or "no state"


def _partial(operator: AggregateWindowsInstance, partial: Any, panes: Any) -> str:
    users, clicks = partial.keys[0].to_pylist(), operator.aggregator.results(partial)[0].to_pylist()
    ends = [_time(operator.windows.last_end(pane)) for pane in panes.tolist()]
    return " ".join(f"{user}={n} by {end}" for user, n, end in sorted(zip(users, clicks, ends, strict=True)))


def _aside(task: TaskCore) -> list[str]:
    assert task.handovers is not None
    batches = [batch for incoming in task.handovers._incoming.values() for waiting in incoming.aside.values() for batch in waiting]
    return ["sets aside " + " ".join(map(_users, batches))] if batches else []
