"""A small language for the life of a job, for the files in `job_scenarios/`.

The job reads `clicks`, counts them by user and writes the counts. Workers, storage and nodes act only when a command says so, and what the
state machine wants of them is written below the command.

    job CLICKS COUNT [nodes NAME...]    a job with so many workers of each operator that saves its state; on nodes with 4 slots each
    begin                               the coordinator starts the job
    continue CLICKS COUNT               another start of the program, with these numbers of workers, from the newest checkpoint
    storage                             storage answers the oldest request
    storage fails REASON                the oldest checkpoint can't be written
    processes                           the processes that are to start have started, those that are to end have ended
    workers                             the workers carry out their commands, until they have none
    tick SECONDS                        time passes
    lose WORKER                         the worker's process is killed
    finish                              the sources have no more rows, and the workers send their last elements
    move GROUP to WORKER                move a key group of `count`
    scale OPERATOR N | node out | node in | checkpoint | stop | drain | cancel      a user's request
    status                              what `job.status()` and the newest reports say
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from acting_job import ActingJob

import evenflow as ef
from evenflow.engine.protocol.effects import Finished
from evenflow.scheduler.job.core import JobCore
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.nodes.placement import ClusterNode, ClusterView, WorkerPlace
from evenflow.scheduler.protocol.effects import (
    Commit,
    CopySavepoint,
    Deploy,
    Discard,
    Effect,
    Ended,
    RememberStart,
    RememberStop,
    Reserve,
    RestoreSinks,
    Retire,
    Save,
    Spawn,
    Tell,
    UseNodes,
    Warn,
)
from evenflow.scheduler.protocol.messages import Announce, Attach, BeginCheckpoint, Command, Detach, ExpectRewind, Switch, TakeSource
from evenflow.scheduler.protocol.reports import CheckpointReport, MigrationReport, NodeScalingReport, ScalingReport
from evenflow.scheduler.protocol.requests import (
    Cancel,
    MoveKeys,
    Scale,
    ScaleIn,
    ScaleOut,
    ShowHistory,
    ShowStatus,
    Stop,
    TakeCheckpoint,
)
from evenflow.scheduler.protocol.restore_point import RestorePoint
from evenflow.scheduler.protocol.storage_answers import ManifestSaved

SLOTS = 4
STORAGE = (Save, Commit, RestoreSinks, Discard, CopySavepoint)


class JobScenario(ActingJob):
    """`run` carries out a command and returns what the state machine wants because of it."""

    def __init__(self) -> None:
        self.commands, self.pending, self.done = [], [], []
        self._steps, self._switched = {}, set()
        self.now = 1000.0
        self._wanted: list[Effect] = []
        self._nodes: tuple[str, ...] = ()
        self._where: dict[str, str] = {}
        self._avoided: frozenset[str] = frozenset()
        self._commands: dict[str, Callable[..., object]] = {
            "job": self._job, "begin": self._begin, "continue": self._continue, "storage": self._storage, "processes": self._processes,
            "workers": self.obey, "tick": lambda seconds: self.tick(float(seconds)), "lose": self._lose, "finish": self._finish,
            "move": lambda group, _, to: self.ask(MoveKeys("count", (int(group),), (), int(to[-1]))),
            "scale": lambda operator, workers: self.ask(Scale(operator, int(workers))),
            "node": lambda way: self.ask(ScaleOut(1) if way == "out" else ScaleIn()),
            "checkpoint": lambda: self.ask(TakeCheckpoint()), "stop": lambda: self.ask(Stop()), "drain": lambda: self.ask(Stop(drain=True)),
            "cancel": lambda: self.ask(Cancel()), "status": self._status,
        }  # fmt: skip

    def run(self, command: str) -> str:
        """Carry out a command. An error that a user would see is its outcome."""
        name, *words = command.split()
        try:
            found = self._commands[name](*words)
        except ef.EvenflowError as error:
            return f"{type(error).__name__}: {error}"
        lines = [*found] if isinstance(found, Iterator) else []
        wanted, self._wanted = self._wanted, []
        return "\n".join([*lines, *_texts(wanted)]) or "nothing"

    def take(self) -> None:
        """Note what the state machine wants."""
        while effects := self.core.effects():
            for effect in effects:
                self._wanted.append(effect)
                if isinstance(effect, UseNodes):
                    self._avoided = effect.avoid
                elif isinstance(effect, Tell):
                    self.commands.append(effect)
                elif not isinstance(effect, (Warn, Ended)):
                    self.pending.append(effect)

    def view(self) -> ClusterView | None:
        """Return the nodes and the workers on them."""
        if not self._nodes:
            return None
        on = list(self._where.values())
        nodes = tuple(ClusterNode(name, SLOTS, SLOTS - on.count(name), on.count(name)) for name in self._nodes)
        return ClusterView(nodes, {worker: WorkerPlace(worker, node) for worker, node in self._where.items()})

    def start(self, worker: str, attempt: int) -> None:
        """Start a worker on the first node that has a slot."""
        if self._nodes and (worker not in self._where or self._where[worker] in self._avoided):
            taken = [node for other, node in self._where.items() if other != worker]
            self._where[worker] = next(n for n in self._nodes if n not in self._avoided and taken.count(n) < SLOTS)
        super().start(worker, attempt)

    def _job(self, clicks: str, count: str, *nodes: str) -> None:
        self._nodes = tuple(nodes[1:])
        self.core = self._core(clicks, count, RestorePoint())

    def _core(self, clicks: str, count: str, begin: RestorePoint) -> JobCore:
        flow = ef.Dataflow("clicks-by-user")
        rows = flow.read(ef.from_items([{"user": "ann"}])).named("clicks").parallelism(int(clicks))
        counts = rows.key_by("user").aggregate(n=ef.count()).named("count").parallelism(int(count))
        counts.write(ef.to_list([], name="counts"))
        config = ef.JobConfig(key_groups=4, checkpoint=ef.CheckpointConfig("saved", interval="10s"), worker=ef.WorkerConfig(cpus=1))
        return JobCore(flow.plan(config=config), config, begin)

    def _begin(self) -> None:
        self.core.begin(self.now)
        self.take()

    def _continue(self, clicks: str, count: str) -> None:
        newest = self.core.checkpoints.newest
        last = self.core.checkpoints.last
        self.commands, self.pending, self._where = [], [], {}
        self.core = self._core(clicks, count, RestorePoint(newest, last=last, committed=last, resumes=True))
        self._begin()

    def _storage(self, *fails: str) -> None:
        effect = next(effect for effect in self.pending if isinstance(effect, STORAGE))
        self.pending.remove(effect)
        if fails:
            self.core.stored(ManifestSaved(effect.manifest.checkpoint, " ".join(fails[1:])), self.now)
        else:
            self.carry_out(effect)
        self.take()

    def _processes(self) -> None:
        wanted, self.pending = self.pending, [effect for effect in self.pending if isinstance(effect, STORAGE)]
        for effect in wanted:
            if isinstance(effect, Retire):
                for worker in effect.workers:
                    self._where.pop(worker, None)
            elif not isinstance(effect, STORAGE):
                self.carry_out(effect)
        self.take()

    def _lose(self, worker: str) -> None:
        self.commands = [tell for tell in self.commands if tell.worker != worker]
        self.lost(worker, "killed")

    def _finish(self) -> None:
        for worker in self.core.workers:
            self.report(worker, Finished({}))

    def _status(self) -> Iterator[str]:
        for worker in self.core.workers:
            self.core.report(worker, WorkerWindow(worker, self.now, 1.0, rows_in=100, rows_out=100, useful=0.2), self.now)
        status = self.ask(ShowStatus())
        yield f"{status.state.value}, attempt {status.attempt}, {', '.join(status.workers)}"
        yield from (f"problem: {problem}" for problem in status.problems)
        for kind in (CheckpointReport, MigrationReport, ScalingReport, NodeScalingReport):
            yield from (str(report) for report in self.ask(ShowHistory(kind))[-1:])
        if self._nodes:
            yield "nodes: " + ", ".join(f"{worker} on {node}" for worker, node in sorted(self._where.items()))


def _texts(effects: list[Effect]) -> Iterator[str]:
    """Effects in words; workers that get the same command share a line."""
    group: list[str] = []
    for number, effect in enumerate(effects):
        if not isinstance(effect, Tell):
            yield _text(effect)
            continue
        group.append(effect.worker)
        after = effects[number + 1] if number + 1 < len(effects) else None
        if not isinstance(after, Tell) or _command(after.command) != _command(effect.command):
            yield f"{', '.join(group)}: {_command(effect.command)}"
            group = []


def _text(effect: Effect) -> str:  # noqa: C901, PLR0911 -- a line for each kind
    match effect:
        case Save(manifest):
            return f"write the manifest of checkpoint {manifest.checkpoint}"
        case Commit(checkpoint, last=last):
            return f"commit checkpoint {checkpoint}{', the last' if last else ''}"
        case RestoreSinks(attempt, manifest, retracts):
            begins = "the beginning" if manifest is None else f"checkpoint {manifest.checkpoint}"
            return f"restore the sinks for attempt {attempt} to {begins}{f', retract up to {retracts}' if retracts else ''}"
        case Discard(checkpoint):
            return f"discard the files of checkpoint {checkpoint}"
        case Deploy(attempt, plan, manifest):
            begins = "nothing" if manifest is None else f"checkpoint {manifest.checkpoint}"
            return f"deploy attempt {attempt} from {begins}: {', '.join(task.name for task in plan.tasks)}"
        case Spawn(_, _, workers):
            return f"start {', '.join(workers)}"
        case Retire(workers):
            return f"end {', '.join(workers)}"
        case UseNodes(avoid, prefer):
            return f"new processes avoid {_names(avoid)} and prefer {_names(prefer)}"
        case Reserve(workers):
            return f"keep {len(workers)} spare processes" if workers else "keep no more spare processes"
        case RememberStart():
            return "remember that all workers have started"
        case RememberStop(order):
            return f"remember that the job stops {'drained' if order.drain else 'at a barrier'}"
        case Ended(state):
            return f"the job has {state.value}"
        case Warn(text):
            return f"log: {text}"
        case _:
            return type(effect).__name__


def _command(command: Command) -> str:
    name = type(command).__name__
    match command:
        case BeginCheckpoint(number, base, last):
            return f"begin checkpoint {number}{f', changes since {base}' if base else ''}{', then stop' if last else ''}"
        case Announce(number, stage, steps):
            moves = "; ".join(
                ", ".join(f"groups {list(move.groups)} from {move.source} to {move.target}" for move in step.moves) for step in steps
            )
            return f"announce migration {number} of {stage}: {moves}"
        case Attach():
            return f"attach: {len(command.accept)} channels to accept, {len(command.connect)} to open"
        case Detach():
            return f"detach: {len(command.outputs)} channels end, workers {list(command.peers)} have left"
        case ExpectRewind():
            return f"expect new event times on {len(command.channels)} channels"
        case TakeSource():
            return f"read on as reader {command.index} of {command.parallelism}" if command.position is not None else "nothing left to read"
        case Switch(version):
            return f"switch to step {version}"
        case _:
            return name


def _names(nodes: frozenset[str]) -> str:
    return ", ".join(sorted(nodes)) or "none"
