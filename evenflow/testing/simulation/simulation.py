"""A whole job in one thread on a virtual clock, in an order determined by a seed.

The tasks, the exchanges and the job's state machine are those that run on Ray. Runs differ in the next process to act, the size of
batches, the slow workers, and the messages that overtake others; the same seed gives the same run.

>>> import evenflow as ef
>>> flow = ef.Dataflow("words")
>>> words = flow.read(ef.from_items(["a", "b", "a"]))
>>> _ = words.key_by("item").aggregate(n=ef.count(), emit="final").write(ef.to_list([]))
>>> result = simulate(flow, seed=7)
>>> sorted((row["item"], row["n"]) for row in result.rows["to_list"])
[('a', 2), ('b', 1)]
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from random import Random
from typing import Any

from ...connectors.python.list_sink import to_list
from ...dataflow import Dataflow
from ...engine.operators.processing.broadcast_process import BroadcastProcessInstance
from ...engine.operators.rows.read import Read
from ...engine.operators.rows.write import Write
from ...engine.plan.physical import Plan
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.ids import NO_CHECKPOINT, Attempt, ChannelId, WorkerId
from ...engine.sink import Sink
from ...engine.source import Source
from ...scheduler.configs.autoscale import AutoscaleConfig
from ...scheduler.configs.balance import BalanceConfig
from ...scheduler.configs.checkpoint import CheckpointConfig
from ...scheduler.configs.job import JobConfig
from ...scheduler.configs.run import MetricsConfig, NetworkConfig
from ...scheduler.protocol.effects import Deploy, JobState, Spawn
from ...scheduler.protocol.restore_point import RestorePoint
from ...scheduler.record.restoring.restore import restored_tasks
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...scheduler.record.restoring.terms import Terms
from ..settings import changed
from .actions import ACTIONS, TIME, Action, Choice, OfWorker, World
from .coordinator import Clock, JobCounts, SimulatedCoordinator, Surroundings
from .ledger import Ledger
from .network import Channel, SimulationError
from .nodes import SimulatedNodes
from .storage import MemoryStorage
from .workers import SimulatedWorker

STUCK_AFTER = 200
"""Steps in a row in which only time can pass; after that, no step ever will do more."""

ENOUGH = 1_000_000
"""Restarts and failed checkpoints in a row: accidents must not end a job."""

PACED = 1_000
"""The first seed whose tasks take time for their work, rest and save state at a pace of their own. Below, they do all at once."""

TRACE = 25
"""The number of last steps in an error."""


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The result of a simulated job.

    `rows`: the rows of each sink, by operator name, in the order of delivery. `late_records`: late records by operator with windows.
    `actions`: the number of times that each kind of action was picked. `moved`: True if keys have moved, or workers have joined or left.
    `stopped`: True if the job stopped at a barrier, at `now` of its clock, so that another run can continue with `storage`.
    """

    seed: int
    state: JobState
    rows: Mapping[str, list[dict[str, Any]]]
    checkpoints: int
    late_records: Mapping[str, int]
    actions: Mapping[str, int]
    moved: bool = False
    stopped: bool = False
    now: float = 0.0
    storage: MemoryStorage = field(default_factory=MemoryStorage, compare=False)


def simulate(
    flow: Dataflow,
    seed: int,
    *,
    parallelism: int = 2,
    config: JobConfig | None = None,
    save_state: bool = False,
    actions: Sequence[Action] = ACTIONS,
    max_steps: int = 200_000,
    after: SimulationResult | None = None,
) -> SimulationResult:
    """Run `flow` in the order that `seed` determines; its sinks are replaced by lists, which the result holds.

    Without `config` the seed also chooses batch sizes, key groups, the interval of checkpoints, and whether aggregates are combined before
    the shuffle. `actions` are the possible events; add accidents to them. With `save_state` checkpoints contain the state, and the job
    survives accidents. `after`: the run from whose last checkpoint this one begins. Raises the error of a user's function or a source, as
    `job.wait()` does, and SimulationError if the job gets stuck, takes more than `max_steps`, or leaves something behind. Sources with a
    clock of their own (`generate(rate=...)`) make runs differ.
    """
    random = Random(seed)  # noqa: S311 -- the point is that it can be repeated
    config = replace(config, parallelism=parallelism) if config is not None else random_config(random, parallelism)
    config = saving(config, random) if save_state else config
    simulation = _Simulation(lambda workers: flow.plan(config=replace(config, parallelism=workers)), config, seed, random, actions, after)
    try:
        return simulation.run(max_steps)
    except Exception as error:
        error.add_note(f"simulated as simulate(flow, seed={seed}, parallelism={parallelism}, ...) with {config}")
        error.add_note("last steps: " + "; ".join(f"{who}: {kind}" for who, kind in simulation.trace))
        raise


def random_config(random: Random, parallelism: int) -> JobConfig:
    """Return a random configuration in which a few rows exercise many mechanisms."""
    batch_rows = random.choice((1, 2, 3, 5, 16, 1024))
    key_groups = random.choice((16, 64)) if parallelism <= 16 else 1024
    checkpoint = CheckpointConfig(interval=random.choice((None, "1ms", "20ms", "500ms")))
    network = NetworkConfig(batch_rows=batch_rows, credit_batches=random.choice((1, 2, 16)))
    combine, metrics = random.random() < 0.5, MetricsConfig(enabled=random.random() < 0.5, window="50ms")
    return JobConfig(
        parallelism,
        key_groups,
        combine,
        checkpoint=checkpoint,
        network=network,
        metrics=metrics,
        autoscale=AutoscaleConfig(interval="100ms", max_parallelism=4),
        balance=BalanceConfig(after="50ms", cooldown="50ms"),
    )


def saving(config: JobConfig, random: Random) -> JobConfig:
    """Return the same configuration, with checkpoints that contain the state and any number of restarts."""
    interval = config.checkpoint.interval or random.choice(("1ms", "20ms", "500ms"))
    patience = changed(config, restart={"delay": 0, "most": ENOUGH}, checkpoint={"tolerable_failures": ENOUGH})
    return changed(patience, checkpoint={"dir": "simulated", "interval": interval})


class _Simulation:
    def __init__(
        self,
        replan: Callable[[int], Plan],
        config: JobConfig,
        seed: int,
        random: Random,
        actions: Sequence[Action],
        after: SimulationResult | None,
    ) -> None:
        plan, self._seed = replan(config.parallelism), seed
        self.trace: deque[tuple[str, str]] = deque(maxlen=TRACE)
        self._of_worker = [action.choices_of for action in actions if isinstance(action, OfWorker)]
        self._of_others = [action for action in actions if not isinstance(action, OfWorker)]
        self._sources = [c.operator.source for stage in plan.stages for c in stage.chain if isinstance(c.operator, Read)]
        self._rows: dict[str, list[dict[str, Any]]] = {}
        sinks = self._list_sinks(plan)
        storage, clock = (after.storage.for_next_run(), Clock(after.now)) if after is not None else (MemoryStorage(), Clock())
        self._storage, self._ledger, self._credit, self._sinks = storage, Ledger(), config.network.credit_batches, sinks
        self._channels: dict[ChannelId, Channel] = {}
        self._workers: dict[WorkerId, SimulatedWorker] = {}
        self._touched: set[str] = set()
        self._nodes = SimulatedNodes()
        around = Surroundings(
            plan, config, sinks, self._storage, self._ledger, clock, JobCounts(), self._workers,
            self._deploy, self._spawn, self._retire, self._nodes, replan,
        )  # fmt: skip
        self.counts = around.counts
        self.world = World(
            random,
            self._channels,
            self._workers,
            SimulatedCoordinator(around, Terms(), RestorePoint(storage.first, storage.first is not None, storage.last)),
            around.clock,
        )
        self._schedule = _Schedule(random)

    def _deploy(self, wanted: Deploy) -> None:
        """Replace workers and channels by new ones; elements and messages of the old ones are lost."""
        for worker in self._workers.values():
            worker.close()
        manifest = wanted.manifest
        begins = manifest is None or manifest is self._storage.first
        tasks = restored_tasks(manifest, wanted.plan, "", NO_CHECKPOINT if begins else manifest.checkpoint) if manifest is not None else {}
        self._channels = self.world.channels = {spec.id: Channel(spec, self._touched) for spec in wanted.plan.channels}
        self._workers.clear()
        self._nodes.keep(task.name for task in wanted.plan.tasks)
        self._nodes.place(task.name for task in wanted.plan.tasks)
        for task in wanted.plan.tasks:
            spec = _with_sinks(task, self._sinks).of_attempt(wanted.plan.name, wanted.attempt)
            self._workers[task.name] = self._worker(spec, wanted.attempt, tasks.get(task.name))

    def _spawn(self, wanted: Spawn) -> None:
        """Start joining workers, with all channels around them."""
        for channel in wanted.plan.channels:
            self._channels.setdefault(channel.id, Channel(channel, self._touched))
        self._nodes.place(wanted.workers)
        for task in wanted.plan.tasks:
            if task.name in wanted.workers:
                spec = _with_sinks(task, self._sinks).of_attempt(wanted.plan.name, wanted.attempt)
                self._workers[task.name] = self._worker(spec, wanted.attempt, None)

    def _worker(self, spec: TaskSpec, attempt: Attempt, restored: RestoredTask | None) -> SimulatedWorker:
        pace = Random(f"{self._seed} {spec.name} {attempt}") if self._seed >= PACED else None  # noqa: S311 -- the schedule has its own
        return SimulatedWorker(spec, self._channels, self._credit, self._storage, attempt, restored, self._touched, pace)

    def _retire(self, gone: tuple[WorkerId, ...]) -> None:
        for name in gone:
            if name in self._workers:
                self._workers.pop(name).close()
        self._nodes.keep(self._workers)

    def run(self, max_steps: int) -> SimulationResult:
        world, picked = self.world, Counter[str]()
        connectors: list[Source | Sink] = [*self._sinks.values(), *self._sources]
        try:
            for connector in connectors:
                connector.start()
            world.coordinator.begin()
            self._run(picked, max_steps)
            if world.coordinator.core.state is JobState.FINISHED:
                self._check_leftovers()
                self._check_visible()
        finally:
            for worker in (worker for each in (world, *world.zombies) for worker in each.workers.values()):
                worker.close()
            for connector in connectors:
                connector.stop()
        core = world.coordinator.core
        if core.error is not None:
            raise core.error
        # A coordinator doesn't know what the one before it moved: its attempts have higher numbers.
        moved = bool(core.migrations.history or core.record.rescales or core.attempt or world.restarts)
        stopped = any(worker.task.stopped for worker in world.workers.values())
        late, completed = self._late_records(), core.checkpoints.completed
        return SimulationResult(self._seed, core.state, self._rows, completed, late, dict(picked), moved, stopped, world.now, self._storage)

    def _run(self, picked: Counter[str], max_steps: int) -> None:
        world, alone = self.world, 0
        for _ in range(max_steps):
            if world.coordinator.over:
                return
            acts, waits = self._choices()
            alone = 0 if acts else alone + 1
            if alone > STUCK_AFTER:
                raise SimulationError(self._standstill("is stuck: nothing but time passes"))
            choice = self._schedule.pick(acts, waits)
            picked[choice.kind] += 1
            self.trace.append((choice.who, choice.kind))
            choice.run(*choice.arguments)
            self._forget_choices(choice.who)
        raise SimulationError(self._standstill(f"has not ended within {max_steps} steps"))

    def _choices(self) -> tuple[list[Choice], list[Choice]]:
        """List the possible next events, including the passing of time."""
        world = self.world
        acts: list[Choice] = []
        waits: list[Choice] = []
        for worker in self._workers.values():
            choices = worker.choices
            if choices is None:
                choices = worker.choices = self._choices_of(worker)
            if choices:
                acts += choices
        for action in self._of_others:
            for choice in action(world):
                (waits if choice.who == TIME else acts).append(choice)
        return acts, waits

    def _choices_of(self, worker: SimulatedWorker) -> list[Choice]:
        found: list[Choice] = []
        for choices_of in self._of_worker:
            if more := choices_of(worker, self.world):
                found += more
        return found

    def _forget_choices(self, who: str) -> None:
        """Forget the choices of the workers that a step of `who` has touched. Steps of others may touch all workers."""
        workers, touched = self._workers, self._touched
        if who in workers:
            touched.add(who)
        elif who != TIME:
            touched.update(workers)
        for name in touched:
            if (worker := workers.get(WorkerId(name))) is not None:
                worker.choices = None
        touched.clear()

    def _standstill(self, what: str) -> str:
        core = self.world.coordinator.core
        lines = [f"{name} waits for {worker.waits_for()}" for name, worker in self.world.workers.items()]
        return "\n  ".join([f"the job `{core.name}`, {core.state.value}, {what}", *lines])

    def _check_leftovers(self) -> None:
        workers, tables = self.world.workers, self.world.coordinator.core.migrations.tables
        left = [f"{name} {what}" for name, worker in workers.items() for what in worker.leftovers()]
        placed = [(name, worker, tables[worker.spec.stage]) for name, worker in workers.items() if worker.spec.stage in tables]
        left += [f"{name} has state of keys that belong to another worker" for name, worker, table in placed if worker.misplaced(table)]
        left += self._unequal_copies()
        left += [f"it has removed {what}, of another run" for what in self._storage.harmed_others()]
        if left:
            raise SimulationError("\n  ".join(["the job has finished, but:", *left]))

    def _unequal_copies(self) -> list[str]:
        """Describe workers of one operator that have different rows of a broadcast stream; one without keys may have no copy."""
        first: dict[str, tuple[WorkerId, list[Any]]] = {}
        different = []
        for name, worker in self.world.workers.items():
            head = worker.task.operators[0]
            if isinstance(head, BroadcastProcessInstance) and head.state.copy.here:
                rows = list(head.state.copy.rows.items())
                other, others = first.setdefault(worker.spec.stage, (name, rows))
                if rows != others:
                    different.append(f"{name} has the broadcast rows {rows}, and {other} has {others}")
        return different

    def _check_visible(self) -> None:
        wrong = [name for name, rows in self._rows.items() if self._ledger.rows(name) != rows]
        if wrong:
            raise SimulationError(f"the job has finished, and others than its own rows are visible of {', '.join(wrong)}")

    def _late_records(self) -> dict[str, int]:
        late: Counter[str] = Counter()
        for worker in self.world.workers.values():
            for operator in worker.task.operators:
                late[operator.context.name] += operator.late_records
        return dict(late)

    def _list_sinks(self, plan: Plan) -> dict[str, Sink]:
        sinks: dict[str, Sink] = {}
        for stage in plan.stages:
            for chained in stage.chain:
                if isinstance(chained.operator, Write):
                    self._rows[chained.name] = []
                    sinks[chained.name] = to_list(self._rows[chained.name], name=chained.name)
        return sinks


class _Schedule:
    """A random choice by weight: every kind of action has its own pace in this run, some workers are slow, and there are bursts."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._weights = _Weights(random)
        self._time_share = random.choice((0.01, 0.1, 0.4))
        self._busy, self._left = "", 0

    def pick(self, acts: Sequence[Choice], waits: Sequence[Choice]) -> Choice:
        """Pick one of the choices; time passes in a fixed share of the steps, whatever else is possible."""
        random = self._random
        if not acts or (waits and random.random() < self._time_share):
            return random.choice(waits)
        if self._left:
            self._left -= 1
            acts = [choice for choice in acts if choice.who == self._busy] or acts
        bounds = list(accumulate([choice.weight or self._weigh(choice) for choice in acts]))
        choice = acts[bisect(bounds, random.random() * bounds[-1], 0, len(acts) - 1)]
        if not self._left and random.random() < 0.02:
            self._busy, self._left = choice.who, random.randint(2, 30)
        return choice

    def _weigh(self, choice: Choice) -> float:
        choice.weight = weight = self._weights[choice.kind, choice.who]
        return weight


class _Weights(dict[tuple[str, str], float]):
    """Weights by kind and by process: the product of both paces, drawn when it is first needed."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._of_kind: dict[str, float] = {}
        self._of_worker: dict[str, float] = {}

    def __missing__(self, key: tuple[str, str]) -> float:
        kind, who = key
        if kind not in self._of_kind:
            self._of_kind[kind] = float(10 ** -self._random.uniform(0, 2))
        if who not in self._of_worker:
            self._of_worker[who] = 0.02 if self._random.random() < 0.2 else 1.0
        return self.setdefault(key, self._of_kind[kind] * self._of_worker[who])


def _with_sinks(task: TaskSpec, sinks: Mapping[str, Sink]) -> TaskSpec:
    if not any(isinstance(c.operator, Write) for c in task.chain):
        return task
    chain = tuple(replace(c, operator=Write(sinks[c.name])) if isinstance(c.operator, Write) else c for c in task.chain)
    return replace(task, chain=chain)
