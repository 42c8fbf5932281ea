"""The possible next events of a simulated job: each action lists its choices in a world, and the schedule picks one.

An action is a function from the world to choices, so a test can add its own: `simulate(flow, 1, actions=(*ACTIONS, stop_at_once))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ...engine.protocol.ids import ChannelId, WorkerId
from .coordinator import Clock, SimulatedCoordinator
from .network import Channel, Mailbox
from .workers import SimulatedReport, SimulatedWorker

STEPS_IN_TIME = (0.0005, 0.004, 0.03, 0.5)
"""Seconds by which the clock may advance at once."""

TICKING = 0.02
"""Share of the moments at which workers may look at the clock. A watermark that follows the clock is work for all workers downstream,
which would leave the sources no time.
"""


@dataclass(slots=True)
class World:
    """Everything that a step may read or change. Counters: `accidents`, `damages` of checkpoints, `deletions` of manifests, and `restarts`
    of the program.

    `zombies`: processes that continue after they were declared lost, each with its own view, for `steps_left`; `zombies_made` so far,
    `superseded`: coordinators among them that have found a newer one. `alone`: workers without their coordinator.
    """

    random: Random
    channels: Mapping[ChannelId, Channel]
    workers: dict[WorkerId, SimulatedWorker]
    coordinator: SimulatedCoordinator
    clock: Clock
    accidents: int = 0
    damages: int = 0
    deletions: int = 0
    restarts: int = 0
    zombies: list[World] = field(default_factory=list)
    zombies_made: int = 0
    superseded: int = 0
    steps_left: int = 0
    alone: bool = False
    known: dict[str | Choice, Choice] = field(default_factory=dict)
    """Choices made before, by kind, and those of zombies by the zombie's choice."""

    @property
    def now(self) -> float:
        """Seconds on the virtual clock."""
        return self.clock.now


@dataclass(slots=True, eq=False)
class Choice:
    """A possible event: `run(*arguments)` carries it out; `who` is its process, which the schedule may slow down.

    `weight`: the schedule's weight, 0.0 until it has drawn one, unless the action has given one.
    """

    who: str
    kind: str
    run: Callable[..., None]
    arguments: tuple[Any, ...] = ()
    weight: float = 0.0


Action = Callable[[World], Iterable[Choice]]

COORDINATOR = "the coordinator"
TIME = "time"


@dataclass(frozen=True, slots=True)
class OfWorker:
    """An action of each worker on its own. Its choices are valid until the worker changes, so they are computed only then."""

    choices_of: Callable[[SimulatedWorker, World], list[Choice]]

    def __call__(self, world: World) -> list[Choice]:
        found: list[Choice] = []
        for worker in world.workers.values():
            found += self.choices_of(worker, world)
        return found


@OfWorker
def start(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker start its task."""
    return [] if worker.started or worker.over else once(worker, "start", _at_once, worker.open, world)


@OfWorker
def receive(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker take the oldest element of one of its channels."""
    if not worker.may_take:
        return []
    return _from_channels(worker, "receive", worker.channels.inputs, world)


@OfWorker
def take_state(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker take state, or a request for state, from another worker of its operator, even if it waits for credit or has ended."""
    if not worker.started or worker.dead:
        return []
    return _from_channels(worker, "take state", worker.channels.state_inputs, world)


@OfWorker
def give_state(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker send a chunk of state that moves away."""
    return once(worker, "give state", _at_once, worker.give, world) if worker.may_give else []


@OfWorker
def report_arrived(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker report the moves that are complete, after a rest."""
    return once(worker, "report arrived", _at_once, worker.report_arrived, world) if worker.may_report_arrived else []


@OfWorker
def replay(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker process some records that had been set aside until their state was here."""
    return once(worker, "replay", _at_once, worker.replay, world) if worker.may_replay else []


@OfWorker
def install_state(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker install a slice of the state that it restored."""
    return once(worker, "install state", _at_once, worker.install, world) if worker.may_install else []


@OfWorker
def save_state(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker make a chunk of its state for a checkpoint."""
    return once(worker, "save state", _at_once, worker.save, world) if worker.may_save else []


def store(world: World) -> Iterable[Choice]:
    """Let storage carry out the next step of its work."""
    return (Choice(COORDINATOR, "store", world.coordinator.store),) if world.coordinator.storage.waits else ()


def copy_savepoint(world: World) -> Iterable[Choice]:
    """Let storage copy the next file of a savepoint."""
    return (Choice(COORDINATOR, "copy savepoint", world.coordinator.copy_savepoint),) if world.coordinator.storage.copies else ()


def deploy(world: World) -> Iterable[Choice]:
    """Replace the old attempt by a new one."""
    return (Choice(COORDINATOR, "deploy", world.coordinator.bring_up),) if world.coordinator.wanted is not None else ()


def spawn(world: World) -> Iterable[Choice]:
    """Start joining workers."""
    return (Choice(COORDINATOR, "spawn", world.coordinator.bring_in),) if world.coordinator.spawns else ()


@OfWorker
def poll(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a source worker poll its reader."""
    return once(worker, "poll", _poll, worker, world) if worker.may_poll else []


@OfWorker
def flush(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Let a worker send its buffers, as it does when it has nothing else to do."""
    return once(worker, "flush", _at_once, worker.flush, world) if worker.started and worker.task.outputs.wait and worker.may_take else []


@OfWorker
def obey(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Deliver a command to a worker, perhaps before an earlier one, perhaps repeated later."""
    return once(worker, "obey", _obey, worker, world) if worker.commands.under_way and not worker.dead else []


@OfWorker
def report(worker: SimulatedWorker, world: World) -> list[Choice]:
    """Deliver a report to the coordinator, perhaps before an earlier one, perhaps repeated later."""
    return once(worker, "report", _report, worker, world) if worker.reports.under_way else []


def deliver(world: World) -> Iterable[Choice]:
    """Let the driver deliver committed rows to its sinks."""
    return (Choice(COORDINATOR, "deliver", world.coordinator.deliver),) if world.coordinator.deliveries else ()


def pass_time(world: World) -> Iterable[Choice]:
    """Advance the clock; a checkpoint may begin. Always possible."""
    if (known := world.known.get("pass time")) is None:
        known = world.known["pass time"] = Choice(TIME, "pass time", _pass_time, (world,))
    return (known,)


def tick(world: World) -> Iterable[Choice]:
    """Let a worker with operators that count by the clock look at it, as one does that has nothing else to do."""
    may = [worker for worker in world.workers.values() if worker.may_tick(world.now)]
    if not may or world.random.random() >= TICKING:
        return ()
    return [once(worker, "tick", _tick, worker, world, who=TIME)[0] for worker in may]


ACTIONS: tuple[Action, ...] = (
    start, receive, take_state, give_state, report_arrived, replay, install_state, save_state, poll, flush, obey, report, store, deliver,
    deploy, spawn, copy_savepoint, pass_time, tick,
)  # fmt: skip
"""The actions of a job without accidents."""


def once(worker: SimulatedWorker, kind: str, run: Callable[..., None], *arguments: Any, who: str | None = None) -> list[Choice]:
    """Return the worker's only choice of a kind, the same each time, so that it is not made and weighed in every step.

    `who`: the process that it counts for, None for the worker.
    """
    known: list[Choice] | None = worker.known.get(kind)
    if known is None:
        known = worker.known[kind] = [Choice(who or worker.name, kind, run, arguments)]
    return known


def _from_channels(worker: SimulatedWorker, kind: str, channels: Mapping[ChannelId, Channel], world: World) -> list[Choice]:
    """Yield a choice for each channel with a waiting element."""
    choices: list[Choice] = []
    known = worker.known
    for number, channel in channels.items():
        if channel.elements:
            if number not in known:
                known[number] = Choice(worker.name, kind, _receive, (worker, channel, world))
            choices.append(known[number])
    return choices


def _at_once(does: Callable[[float], None], world: World) -> None:
    does(world.now)


def _receive(worker: SimulatedWorker, channel: Channel, world: World) -> None:
    worker.receive(channel, world.now)


def _tick(worker: SimulatedWorker, world: World) -> None:
    worker.flush(world.now)
    worker.choices = None


def _poll(worker: SimulatedWorker, world: World) -> None:
    worker.poll(world.random.randint(1, 6), world.random.random() < 0.1, world.now)


def _obey(worker: SimulatedWorker, world: World) -> None:
    for command in _arrive(worker.commands, world.random):
        worker.obey(command, world.now)


def _report(worker: SimulatedWorker, world: World) -> None:
    reports: list[SimulatedReport] = _arrive(worker.reports, world.random)
    world.coordinator.receive(worker.name, worker.attempt, reports)


def _arrive(mailbox: Mailbox[Any], random: Random) -> list[Any]:
    index = random.randrange(len(mailbox.under_way))
    if random.random() < 0.2:
        mailbox.repeat(index)
    return mailbox.arrive(index)


def _pass_time(world: World) -> None:
    world.clock.now += world.random.choice(STEPS_IN_TIME)
    world.coordinator.tick()
