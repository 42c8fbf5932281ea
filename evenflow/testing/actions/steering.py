"""A simulated job that its policies steer: balancers and scaling policies decide by random figures.

Their decisions are odd on purpose: the rows must stay those of the oracle, whatever they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from ...balancer.policies import POLICIES as BALANCERS
from ...engine.errors import RequestError
from ...scheduler.load.window import WorkerWindow
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.reports import NodeScalingReport, NodeScalingState
from ...scheduler.protocol.requests import Autoscale, Balance, ScaleIn, ScaleOut
from ..simulation.actions import COORDINATOR, Action, Choice, World, poll
from ..simulation.network import SimulationError
from ..simulation.nodes import NODES
from ..simulation.workers import SimulatedWorker
from .moving import poll_slowly

SCALING_POLICIES = ("ds2", "threshold", "dhalion", "stela")

MOST_DRAINS = 2
"""The number of nodes that drain, out of four."""

WINDOW = 0.05
"""Seconds that a drawn window lasts."""


def with_policies(actions: Sequence[Action], *, sources: bool = True) -> tuple[Action, ...]:
    """Return `actions` for a job with automatic balancing and scaling, whose nodes are added and given back; a node that is given back
    must be empty.

    `sources`: True if the workers of sources may change, for flows that don't rely on the order of a source's records.
    """

    def measure(world: World) -> Iterator[Choice]:
        if world.coordinator.core.state is JobState.RUNNING and world.random.random() < 0.3:
            yield Choice(COORDINATOR, "measure", _measure, (world,))

    def choose(world: World) -> Iterator[Choice]:
        if world.coordinator.core.state is JobState.RUNNING and world.random.random() < 0.05:
            yield Choice(COORDINATOR, "choose a policy", _choose, (world, sources))

    def scale_nodes(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        if sources and core.state is JobState.RUNNING and not core.busy and world.random.random() < 0.2:
            yield Choice(COORDINATOR, "scale nodes", _scale_nodes, (world,))

    return *(action for action in actions if action not in (poll, poll_slowly)), poll_slowly, measure, choose, scale_nodes, NodesAreEmpty()


def with_drains(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Return `actions` for a job on whose cluster up to two nodes are about to go, at any moment; it must leave them, and so must its
    coordinator.
    """

    def leave(world: World) -> Iterator[Choice]:
        """End a coordinator that leaves its node, before anything else happens to it."""
        if world.coordinator.leaves:
            world.coordinator.nodes.leave()
            world.coordinator = world.coordinator.lose()
        return iter(())

    def drain(world: World) -> Iterator[Choice]:
        nodes, random = world.coordinator.nodes, world.random
        if len(nodes.view().draining) < MOST_DRAINS and random.random() < 0.2:
            yield Choice(COORDINATOR, "drain a node", nodes.drain, (random.choice(NODES), random.choice((None, 0.1, 5.0))))

    return leave, *actions, drain, NodesAreEmpty()


class NodesAreEmpty:
    """An action without effect that checks that no worker is on a node at the moment at which the node is given back."""

    def __init__(self) -> None:
        self._checked: NodeScalingReport | None = None

    def __call__(self, world: World) -> Iterator[Choice]:
        """Check the nodes. Raises SimulationError."""
        change = world.coordinator.core.node_scaling.operations.newest
        newest = None if change is None else change.report()
        if newest is not None and newest.removed is not None and newest.over and newest != self._checked:
            self._checked = newest
            left = [worker for worker, place in world.coordinator.view(oldest=0.0).places.items() if place.node == newest.removed]
            if (left and newest.state is NodeScalingState.DONE) or "stayed on node" in (newest.problem or ""):
                raise SimulationError(f"{', '.join(left)} run on node {newest.removed}: {newest}")
        return iter(())


def _measure(world: World) -> None:
    """Let every worker report its work in the same time."""
    for worker in list(world.workers.values()):
        if worker.started and not worker.dead:
            world.coordinator.interpreter.report(worker.name, worker.attempt, _window(world, worker))


def _window(world: World, worker: SimulatedWorker) -> WorkerWindow:
    random, table = world.random, world.coordinator.core.migrations.tables.get(worker.spec.stage)
    owned = np.flatnonzero(table.groups == worker.spec.index) if table is not None else np.zeros(0, np.int64)
    useful = random.random() * WINDOW
    rows = random.randrange(1, 1000)
    loads = np.array([random.random() for _ in owned])
    return WorkerWindow(
        worker.name, world.now, WINDOW, rows, rows, useful, queued_rows=random.choice((0, 5000)), keyed_records=rows,
        wait_credit=random.choice((0.0, WINDOW - useful)), state_bytes=random.randrange(10_000),
        groups=owned.astype(np.int32), load=loads * useful / max(loads.sum(), 1e-9),
    )  # fmt: skip


def _choose(world: World, sources: bool) -> None:
    random, core = world.random, world.coordinator.core
    keyed = [stage.name for stage in core.plan.stages if stage.is_keyed]
    with suppress(RequestError):  # where the job measures nothing
        if sources and random.random() < 0.5:
            world.coordinator.ask(Autoscale(random.choice(SCALING_POLICIES), "act"))
        elif keyed:
            world.coordinator.ask(Balance(random.choice(keyed), random.choice(list(BALANCERS))))


def _scale_nodes(world: World) -> None:
    """Request a node more or less; an impossible request is refused."""
    with suppress(RequestError):
        world.coordinator.ask(ScaleOut(1) if world.random.random() < 0.5 else ScaleIn())
