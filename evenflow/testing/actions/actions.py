"""What may happen next in a simulated job: each action looks at the world and lists its choices; the schedule picks one.

An action is a function from the world to choices, so a test adds its own: `simulate(flow, 1, actions=(*ACTIONS, stop_at_once))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ...engine.protocol.ids import ChannelId, WorkerId
from ..simulated.coordinator import Clock, Coordinator
from ..simulated.network import Channel, Mailbox
from ..simulated.workers import SimulatedReport, Worker

STEPS_IN_TIME = (0.0005, 0.004, 0.03, 0.5)
"""Seconds by which the clock may move at once."""


@dataclass(slots=True)
class World:
    """Everything that a step may read or change. Counted so far: `accidents`, `damages` of checkpoints, `deletions` of manifests, and
    `restarts` of the program.

    `zombies`: processes that were taken for lost and go on, each with what it sees, for `steps_left`; `zombies_made` so far,
    `superseded`: coordinators among them that have found that another had begun. `alone`: workers without their coordinator.
    """

    random: Random
    channels: Mapping[ChannelId, Channel]
    workers: dict[WorkerId, Worker]
    coordinator: Coordinator
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
    """Choices that were made before, by kind, and those of zombies by what a zombie would do."""

    @property
    def now(self) -> float:
        """Seconds of the virtual clock."""
        return self.clock.now


@dataclass(slots=True, eq=False)
class Choice:
    """`run(*arguments)` does it; `who` does it, so that the schedule can make somebody slow.

    `weight`: what the schedule picks it by, 0.0 until it has drawn that.
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
    """An action of each worker by itself. Its choices hold until something touches the worker, so they are asked for only then."""

    choices_of: Callable[[Worker, World], list[Choice]]

    def __call__(self, world: World) -> list[Choice]:
        found: list[Choice] = []
        for worker in world.workers.values():
            found += self.choices_of(worker, world)
        return found


@OfWorker
def start(worker: Worker, world: World) -> list[Choice]:
    """A worker starts its task."""
    return [] if worker.started or worker.over else once(worker, "start", _at_once, worker.open, world)


@OfWorker
def receive(worker: Worker, world: World) -> list[Choice]:
    """A worker takes the oldest element of one of its channels."""
    if not worker.may_take:
        return []
    return _from_channels(worker, "receive", worker.channels.inputs, world)


@OfWorker
def take_state(worker: Worker, world: World) -> list[Choice]:
    """A worker takes state, or a request for state, from another worker of its operator, even if it waits for credit or has ended."""
    if not worker.started or worker.dead:
        return []
    return _from_channels(worker, "take state", worker.channels.state_inputs, world)


@OfWorker
def give_state(worker: Worker, world: World) -> list[Choice]:
    """A worker gives a chunk of state away in the background."""
    return once(worker, "give state", _at_once, worker.give, world) if worker.may_give else []


@OfWorker
def save_state(worker: Worker, world: World) -> list[Choice]:
    """A worker makes a chunk of its state for a checkpoint."""
    return once(worker, "save state", _at_once, worker.save, world) if worker.may_save else []


def store(world: World) -> Iterable[Choice]:
    """Storage gets on with what it was told."""
    return (Choice(COORDINATOR, "store", world.coordinator.store),) if world.coordinator.storage.waits else ()


def deploy(world: World) -> Iterable[Choice]:
    """A new attempt takes the place of the old one."""
    return (Choice(COORDINATOR, "deploy", world.coordinator.bring_up),) if world.coordinator.wanted is not None else ()


def spawn(world: World) -> Iterable[Choice]:
    """Workers that are to join are started."""
    return (Choice(COORDINATOR, "spawn", world.coordinator.bring_in),) if world.coordinator.spawns else ()


@OfWorker
def poll(worker: Worker, world: World) -> list[Choice]:
    """A source worker polls its reader."""
    return once(worker, "poll", _poll, worker, world) if worker.may_poll else []


@OfWorker
def flush(worker: Worker, world: World) -> list[Choice]:
    """A worker lets its buffers go, as it does when it has nothing else to do."""
    return once(worker, "flush", _at_once, worker.flush, world) if worker.started and worker.task.outputs.wait and worker.may_take else []


@OfWorker
def obey(worker: Worker, world: World) -> list[Choice]:
    """A command comes to a worker, perhaps before an earlier one, perhaps not for the last time."""
    return once(worker, "obey", _obey, worker, world) if worker.commands.under_way and not worker.dead else []


@OfWorker
def report(worker: Worker, world: World) -> list[Choice]:
    """A report comes to the coordinator, perhaps before an earlier one, perhaps not for the last time."""
    return once(worker, "report", _report, worker, world) if worker.reports.under_way else []


def deliver(world: World) -> Iterable[Choice]:
    """The driver hands what was committed to its sinks."""
    return (Choice(COORDINATOR, "deliver", world.coordinator.deliver),) if world.coordinator.deliveries else ()


def pass_time(world: World) -> Iterable[Choice]:
    """The clock moves on; a checkpoint may begin. Always possible."""
    if (known := world.known.get("pass time")) is None:
        known = world.known["pass time"] = Choice(TIME, "pass time", _pass_time, (world,))
    return (known,)


ACTIONS: tuple[Action, ...] = (
    start, receive, take_state, give_state, save_state, poll, flush, obey, report, store, deliver, deploy, spawn,
    pass_time,
)  # fmt: skip
"""What happens in a job that meets no accident."""


def once(worker: Worker, kind: str, run: Callable[..., None], *arguments: Any) -> list[Choice]:
    """The worker's only choice of a kind: the same each time, so that it need not be made and weighed in every step."""
    known: list[Choice] | None = worker.known.get(kind)
    if known is None:
        known = worker.known[kind] = [Choice(worker.name, kind, run, arguments)]
    return known


def _from_channels(worker: Worker, kind: str, channels: Mapping[ChannelId, Channel], world: World) -> list[Choice]:
    """A choice for each channel on which something waits."""
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


def _receive(worker: Worker, channel: Channel, world: World) -> None:
    worker.receive(channel, world.now)


def _poll(worker: Worker, world: World) -> None:
    worker.poll(world.random.randint(1, 6), world.random.random() < 0.1, world.now)


def _obey(worker: Worker, world: World) -> None:
    for command in _arrive(worker.commands, world.random):
        worker.obey(command, world.now)


def _report(worker: Worker, world: World) -> None:
    reports: list[SimulatedReport] = _arrive(worker.reports, world.random)
    world.coordinator.receive(worker.name, worker.attempt, reports)


def _arrive(mailbox: Mailbox[Any], random: Random) -> list[Any]:
    index = random.randrange(len(mailbox.under_way))
    if random.random() < 0.2:
        mailbox.repeat(index)
    return mailbox.arrive(index)


def _pass_time(world: World) -> None:
    world.clock.now += world.random.choice(STEPS_IN_TIME)
    world.coordinator.interpreter.tick()
