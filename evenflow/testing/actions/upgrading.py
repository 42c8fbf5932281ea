"""Exchanges the code of simulated jobs' operators at random, while the stream runs and keyed state moves.

The new code is the same as the old, so the rows must stay those of the oracle, whichever version processes which key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from ...engine.errors import RequestError
from ...engine.plan.physical import Stage
from ...engine.plan.rescale import NewCode
from ...engine.plan.task_spec import ChainedOperator
from ...engine.protocol.ids import CodeVersion
from ...scheduler.load.window import WorkerWindow
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.reports import UpgradeState
from ...scheduler.protocol.upgrade_options import UpgradeOptions
from ..simulation.actions import COORDINATOR, Action, Choice, World
from ..simulation.network import SimulationError

LONGEST_WATCH, WINDOW = 0.2, 0.05
"""Seconds: of a watch, and of a worker's report (`MetricsConfig(window="50ms")`)."""


Chain = Sequence[ChainedOperator]

USUAL, QUIET = "drawn at random", "drawn at random, without rows for the new code"
"""The reasons of upgrades."""

SOON, SELDOM = 1.0, 0.05
"""Weights of the events that an upgrade waits for, and of a refusal. Paces drawn for a run would let most streams end before."""

UNSEEN = 0.05
"""The share of upgrades whose new code gets no rows."""

ABORTED = 0.002
"""The probability at each step with which an upgrade under way is aborted."""


def the_same(stage: Stage, _version: CodeVersion) -> Chain:
    """Return the operators that the stage runs already."""
    return stage.chain


def with_upgrades(
    actions: Sequence[Action],
    most: int = 3,
    *,
    in_order: bool = False,
    aborted: float = ABORTED,
    new: Callable[[Stage, CodeVersion], Chain] = the_same,
    readable: bool | None = None,
) -> tuple[Action, ...]:
    """Return `actions` with at most `most` upgrades of any operators; some are aborted.

    `new(stage, version)`: the operators of the new code. `readable`: the old code can read what the new code writes, None for either.

    `in_order`: sources get no canary, for flows that rely on the order of records whose splits it would reassign.
    """

    def upgrade(world: World) -> Iterator[Choice]:
        core = world.coordinator.core
        if len(core.upgrading.operations) < most and core.state is JobState.RUNNING and not core.busy:
            yield Choice(COORDINATOR, "upgrade", _upgrade, (world, in_order, new, readable))

    def abort(world: World) -> Iterator[Choice]:
        if world.coordinator.core.upgrading.busy and world.random.random() < aborted:
            yield Choice(COORDINATOR, "abort the upgrade", _abort, (world,))

    return *actions, upgrade, abort, prepare, watch, one_version, seen, given_back


def prepare(world: World) -> Iterator[Choice]:
    """Let the processes that an upgrade starts ahead be there at last; for some there is no room."""
    coordinator = world.coordinator
    if not coordinator.reserved:
        yield Choice(COORDINATOR, "spares have started", _start, (world,), SOON)
        if coordinator.core.upgrading.busy:
            yield Choice(COORDINATOR, "no room for spares", _refuse, (world,), SELDOM)


def given_back(world: World) -> Iterator[Choice]:
    """Check that no key moves before processes that start ahead are there, and that none are kept. Raises SimulationError."""
    core, reserved_for = world.coordinator.core, world.coordinator.reserved_for
    upgrade = core.upgrading.operations.current
    if upgrade is None and reserved_for and core.state is JobState.RUNNING and not core.node_scaling.busy:
        raise SimulationError(f"spares for {', '.join(reserved_for)} are kept after an upgrade")
    waits = upgrade is not None and (upgrade.prepares_until or 0.0) > core.record.now
    if waits and not world.coordinator.reserved and core.reconfiguration.busy:
        raise SimulationError("keys or workers move while processes for an upgrade start")
    return iter(())


def watch(world: World) -> Iterator[Choice]:
    """Let workers with new code report rows while they are watched, unless the upgrade has none."""
    upgrade = world.coordinator.core.upgrading.operations.current
    if upgrade is not None and upgrade.state is UpgradeState.WATCHING and upgrade.quiet and upgrade.reason != QUIET:
        yield Choice(COORDINATOR, "report rows", _report_rows, (world, upgrade.version), SOON)


def seen(world: World) -> Iterator[Choice]:
    """Check that new code has passed no watch in which it had no rows. Raises SimulationError."""
    upgrade = world.coordinator.core.upgrading.operations.newest
    if upgrade is not None and upgrade.decided and upgrade.watch_from is not None:
        blind = [one.operator for one in upgrade.compared if not one.new.rows and upgrade.before.stage_of(one.operator).can_be_scaled]
        if blind:
            raise SimulationError(f"upgrade {upgrade.number} has passed its watch without rows for {', '.join(blind)}")
    return iter(())


def one_version(world: World) -> Iterator[Choice]:
    """Check that the workers of a stage run one version after upgrades, unless one ended early. Raises SimulationError."""
    core = world.coordinator.core
    newest, states = core.upgrading.operations.newest, {upgrade.state for upgrade in core.upgrading.operations}
    if newest is not None and states <= {UpgradeState.DONE, UpgradeState.ROLLED_BACK}:
        mixed = [stage.name for stage in core.plan.stages if len(set(stage.codes)) > 1]
        if mixed:
            raise SimulationError(f"workers of {', '.join(mixed)} run several versions after an upgrade that is {newest.state.value}")
    return iter(())


def can_be_upgraded(stage: Stage) -> bool:
    """Return True if workers with other code can take the places of the stage's workers."""
    return stage.is_source or stage.can_be_scaled


def _upgrade(world: World, in_order: bool, new: Callable[[Stage, CodeVersion], Chain], readable: bool | None) -> None:
    core, random = world.coordinator.core, world.random
    stages = [stage for stage in core.plan.stages if can_be_upgraded(stage)]
    if not stages:
        return
    chosen = random.sample(stages, random.randint(1, len(stages)))
    in_one_piece = in_order and any(stage.is_source for stage in chosen)
    version = core.upgrading.next_version
    codes = {stage.name: NewCode(version, tuple(new(stage, version))) for stage in chosen}
    options = UpgradeOptions(
        canary=0.0 if in_one_piece else random.choice((0.0, 0.05, 0.5)),
        watch=random.random() * LONGEST_WATCH,
        on_failure=random.choice(("rollback", "continue")),
        max_slowdown=1e9,
        max_errors=1_000_000,
    )
    if readable is None:
        readable = not core.record.config.checkpoint.saves_state or random.random() < 0.7
    reason = QUIET if random.random() < UNSEEN else USUAL
    with suppress(RequestError):  # something else has begun
        world.coordinator.do(lambda: core.upgrading.upgrade(codes, options, reason, readable=readable))


def _report_rows(world: World, version: CodeVersion) -> None:
    for worker in list(world.workers.values()):
        if worker.spec.code == version and worker.started and not worker.dead:
            window = WorkerWindow(worker.name, world.now, WINDOW, rows_in=1)
            world.coordinator.interpreter.report(worker.name, worker.attempt, window)


def _start(world: World) -> None:
    """Let the upgrade's first workers join at once: time passes seldom in some runs, and waiting for it twice takes steps from them."""
    world.coordinator.reserved = True
    for _ in range(2):
        world.coordinator.tick()


def _refuse(world: World) -> None:
    coordinator = world.coordinator
    coordinator.do(lambda: coordinator.core.not_reserved("no room for spares", world.now))


def _abort(world: World) -> None:
    with suppress(RequestError):  # it has passed its watch
        world.coordinator.do(world.coordinator.core.upgrading.abort)
