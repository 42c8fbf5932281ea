"""Automatic scaling of a job: what its policy decides is carried out, one operator after the other, or a node given back.

Invariants: before a look the job has run, and nothing has moved, for the warm-up, in which what new workers do first would count as
slowness, and then for an interval, so that all windows that the look is made from belong to one size of the dataflow; steps begin one at a
time, when nothing moves. Where operators grow, those furthest down do so first: one that can send more finds receivers that can take it.
Used by the supervisor, under its lock.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..balancer.policies import POLICIES as BALANCERS
from ..scheduler.config import JobConfig
from ..scheduler.configs.balance import OFF
from ..scheduler.job_effects import JobState
from ..scheduler.migration import MigrationState
from ..scheduler.placement import short
from ..scheduler.scaling.controller import Controller, DecisionRecord, Mode
from ..scheduler.scaling.decision import ScalingDecision
from ..scheduler.scaling.observed import observed
from ..scheduler.scaling.snapshot import DataflowSnapshot
from ..scheduler.window import WorkerWindow
from ..state.errors import EvenflowError

if TYPE_CHECKING:
    from .supervisor import Supervisor

_LOG = logging.getLogger(__name__)

KEPT = 1000
"""Decisions that are remembered, the newest."""


@dataclass(frozen=True, slots=True)
class Step:
    """Give `operator` so many workers; None: place its keys anew. Or give the `node` back, with as many workers fewer as it has."""

    operator: str
    parallelism: int | None = None
    node: str | None = None

    def __str__(self) -> str:
        if self.node is not None:
            return f"giving node {short(self.node)} back"
        return f"the rebalance of {self.operator}" if self.parallelism is None else f"{self.operator} to {self.parallelism} workers"


def steps_of(decision: ScalingDecision, seen: DataflowSnapshot) -> tuple[Step, ...]:
    """The steps in their order: a node, growing operators from the sinks up, shrinking ones from the sources down, then rebalances.

    >>> from ..scheduler.scaling.figures import OperatorFigures
    >>> from ..scheduler.scaling.snapshot import Edge
    >>> seen = DataflowSnapshot((OperatorFigures("source", 1), OperatorFigures("count", 2)), (Edge("source", "count"),))
    >>> [str(step) for step in steps_of(ScalingDecision({"source": 2, "count": 4}), seen)]
    ['count to 4 workers', 'source to 2 workers']
    """
    wanted, before = decision.parallelism, seen.parallelism
    growing = [name for name in reversed(seen.order) if wanted.get(name, 0) > before[name]]
    shrinking = [name for name in seen.order if wanted.get(name, before[name]) < before[name]]
    nodes = [] if decision.remove_node is None else [Step("", node=decision.remove_node)]
    return (*nodes, *(Step(name, wanted[name]) for name in (*growing, *shrinking)), *(Step(name) for name in decision.rebalance))


class Autoscaling:
    """One job's. `choose` a policy, call `tick` a few times a second with seconds of a clock that goes on evenly."""

    def __init__(self, supervisor: Supervisor, config: JobConfig) -> None:
        self._supervisor, self._config = supervisor, config
        self._settings = config.autoscale.policy_settings()
        self._controller: Controller | None = None
        self._past: deque[DecisionRecord] = deque(maxlen=KEPT)
        self._quiet: float | None = None
        self._warm: dict[str, WorkerWindow | None] | None = None
        self._steps: deque[Step] = deque()
        self._begun: tuple[Step, int] | None = None
        self._now = 0.0
        self._seen_running = False
        self._epoch = time.time() - time.monotonic()
        self.choose(config.autoscale.policy, config.autoscale.mode)

    @property
    def policy(self) -> str:
        """The policy's name, `off` without one."""
        return OFF if self._controller is None else self._controller.policy

    def choose(self, policy: str, mode: Mode) -> None:
        """Scale by this policy from now on, or no longer if it is `off`. A step under way is finished, the rest of a decision isn't begun.

        Raises RequestError for a policy or a mode that can't be.
        """
        self._config.check_autoscaler(policy, mode)
        if self._controller is not None:
            if self._steps or self._begun:
                self._refuse(self._controller, f"the autoscaler was switched to {policy}")
            self._past.extend(self._controller.history)
        self._controller = None if policy == OFF else Controller(policy, mode, KEPT)

    def decisions(self) -> list[DecisionRecord]:
        """All decisions, oldest first; `time` in seconds since the epoch."""
        newest = self._controller.history if self._controller is not None else ()
        return [replace(record, time=record.time + self._epoch) for record in (*self._past, *newest)][-KEPT:]

    def tick(self, now: float) -> None:
        """Look, decide, or go on with what was decided, whichever it is time for."""
        controller, self._now = self._controller, now
        if self._supervisor.core.state.final and controller is not None and (self._steps or self._begun):
            self._refuse(controller, "the job has ended")
        if self._moving:
            self._quiet = self._warm = None
            if controller is not None and self._seen_running:
                controller.disturbed()
            return
        self._seen_running = True
        quiet = self._quiet = now if self._quiet is None else self._quiet
        if self._warm is None and now - quiet >= self._settings.warm_up_s:
            self._warm = {worker: self._supervisor.metrics.newest(worker) for worker in self._supervisor.core.workers}
        if controller is None:
            return
        if self._steps or self._begun:
            self._go_on(controller)
        elif controller.due(now) and now - quiet >= self._settings.warm_up_s + self._settings.interval_s:
            self._look(controller)

    @property
    def _moving(self) -> bool:
        core = self._supervisor.core
        busy = core.migrations.current is not None or core.rescaling is not None or self._supervisor.elastic.busy
        return core.state is not JobState.RUNNING or busy

    def _fresh(self, worker: str) -> list[WorkerWindow]:
        """The windows of the newest interval that began after the warm-up; a worker that is slow with a batch has long ones, and few.

        The one that follows what was the newest window then had begun before.
        """
        warm = (self._warm or {}).get(worker)
        since = [w for w in self._supervisor.metrics.history(worker) if warm is None or w.start > warm.start][1:]
        length = 0.0
        for first in range(len(since) - 1, -1, -1):
            length += since[first].length
            if length >= self._settings.interval_s:
                return since[first:]
        return since

    def _look(self, controller: Controller) -> None:
        core = self._supervisor.core
        windows = {worker: self._fresh(worker) for worker in core.workers}
        if not all(windows.values()):
            return
        try:
            decision = controller.observe(self._now, observed(core.plan, windows, self._settings, self._supervisor.nodes.of_workers()))
        except EvenflowError as error:
            _LOG.warning("job `%s` is not scaled any more: its policy %s can't decide: %s", core.name, controller.policy, error)
            self.choose(OFF, controller.mode)
            return
        if decision is not None:
            self._steps.extend(steps_of(decision, controller.history[-1].seen))
            self._supervisor.nodes.welcome(decision.add_nodes)
            self._go_on(controller)

    def _go_on(self, controller: Controller) -> None:
        """Nothing moves: what was begun is over."""
        if self._begun is not None:
            problem = self._problem(*self._begun)
            if problem is not None:
                self._refuse(controller, f"{self._begun[0]}: {problem}")
                return
            self._begun = None
        if not self._steps:
            self._supervisor.nodes.welcome(0)
            controller.carried_out(self._now)
            return
        step = self._steps.popleft()
        try:
            self._begun = step, self._begin(controller, step)
        except EvenflowError as error:
            self._refuse(controller, f"{step}: {error}")

    def _begin(self, controller: Controller, step: Step) -> int:
        if step.node is not None:
            return self._supervisor.nodes.scale_in(step.node)
        if step.parallelism is None:
            balancer = next(iter(BALANCERS)) if self._config.balance.policy == OFF else self._config.balance.policy
            return self._supervisor.rebalance(step.operator, balancer, None)
        reason = f"{controller.policy}, automatic: {controller.history[-1].decided.reason}"
        return self._supervisor.elastic.scale(step.operator, step.parallelism, reason=reason)

    def _problem(self, step: Step, number: int) -> str | None:
        if step.node is not None:
            return self._supervisor.nodes.report(number).problem
        if step.parallelism is not None:
            return self._supervisor.elastic.report(number).problem
        done = self._supervisor.core.migrations.history[number].state is MigrationState.DONE
        return None if done else "the keys did not all move: the stream ended, or the job went back to its last checkpoint"

    def _refuse(self, controller: Controller, why: str) -> None:
        self._steps.clear()
        self._begun = None
        self._supervisor.nodes.welcome(0)
        controller.refused(self._now, why)
