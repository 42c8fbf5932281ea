"""Automatic scaling of a job: carries out the decisions of its policy, one operator after the other, or returns a node.

Invariants: before a policy is asked the job has run without moves for the warm-up, in which new workers would look slow, and then
for an interval, so that all its windows belong to one size of the dataflow. Steps begin one at a time, when nothing moves.
Operators grow from the sinks up, so that an operator that can send more finds receivers that can take it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...balancer.policies import POLICIES as BALANCERS
from ...engine.protocol.ids import WorkerId
from ...state.errors import EvenflowError
from ..configs.balance import OFF
from ..load.window import WorkerWindow
from ..policies.base import ScalingPolicy
from ..policies.controller import ADVISED, Controller, DecisionRecord, Mode
from ..policies.dataflow.observed import observed
from ..policies.dataflow.scaled_stage import scaled_stages
from ..policies.dataflow.snapshot import DataflowSnapshot
from ..policies.decision import ScalingDecision
from ..policies.nodes.placement import ClusterView, short
from ..policies.registry import own_settings
from ..protocol.effects import JobState, Warn
from ..record.job_record import JobRecord
from ..record.operation import Operation
from .node_scaling import NodeScaling
from .operator_scaling import NOT_ALL_MOVED, OperatorScaling
from .reconfiguration import Reconfiguration

KEPT = 1000
"""Decisions that are remembered, the newest."""

NODES_SECONDS = 1.0
"""The greatest age of the list of nodes for changes that are carried out; for advice it is the interval between two looks."""


@dataclass(frozen=True, slots=True)
class ScalingStep:
    """Give `operator` `parallelism` workers; None: rebalance its keys. Or give the `node` back, with the workers that it has."""

    operator: str
    parallelism: int | None = None
    node: str | None = None

    def __str__(self) -> str:
        if self.node is not None:
            return f"giving node {short(self.node)} back"
        return f"the rebalance of {self.operator}" if self.parallelism is None else f"{self.operator} to {self.parallelism} workers"


def steps_of(decision: ScalingDecision, seen: DataflowSnapshot) -> tuple[ScalingStep, ...]:
    """Return the steps in order: a node, growing operators from the sinks up, shrinking ones from the sources down, then
    rebalances.

    >>> from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
    >>> from evenflow.scheduler.policies.dataflow.snapshot import Edge
    >>> seen = DataflowSnapshot((OperatorFigures("source", 1), OperatorFigures("count", 2)), (Edge("source", "count"),))
    >>> [str(step) for step in steps_of(ScalingDecision({"source": 2, "count": 4}), seen)]
    ['count to 4 workers', 'source to 2 workers']
    """
    wanted, before = decision.parallelism, seen.parallelism
    growing = [name for name in reversed(seen.order) if wanted.get(name, 0) > before[name]]
    shrinking = [name for name in seen.order if wanted.get(name, before[name]) < before[name]]
    nodes = [] if decision.remove_node is None else [ScalingStep("", node=decision.remove_node)]
    return (
        *nodes,
        *(ScalingStep(name, wanted[name]) for name in (*growing, *shrinking)),
        *(ScalingStep(name) for name in decision.rebalance),
    )


class Autoscaling:
    """One job's. `begin_again` after a change of its settings, `advance` a few times a second."""

    def __init__(
        self, job: JobRecord, operators: OperatorScaling, nodes: NodeScaling, reconfiguration: Reconfiguration, busy: Callable[[], bool]
    ) -> None:
        self._job, self._operators, self._nodes = job, operators, nodes
        self._reconfiguration, self._busy = reconfiguration, busy
        self._policy: ScalingPolicy[Any] | None = None
        self._controller: Controller | None = None
        self._past: deque[DecisionRecord] = deque(maxlen=KEPT)
        self._quiet: float | None = None
        self._warm: dict[WorkerId, WorkerWindow | None] | None = None
        self._steps: deque[ScalingStep] = deque()
        self._begun: tuple[ScalingStep, Operation[Any]] | None = None
        self._seen_running = False
        self.begin_again()

    @property
    def policy(self) -> str:
        """The policy's name, `off` without one."""
        return OFF if self._controller is None else self._controller.policy

    @property
    def own_settings(self) -> dict[str, Mapping[str, Any]]:
        """The own settings of the policy that the job began with and of the one that scales now, by the policy's name."""
        policies = (self._job.begun_with.scaling_policy, self._policy)
        return {policy.name: own_settings(policy) for policy in policies if policy is not None}

    def begin_again(self, cluster: ClusterView | None = None) -> None:
        """Scale by the job's present settings from now on, or no longer if they say `off`. A step under way is finished, the rest
        of a decision isn't begun.
        """
        autoscale = self._job.config.autoscale
        self._settings = autoscale.policy_settings()
        self._switch(self._job.config.scaling_policy, autoscale.mode, cluster)

    def _switch(self, chosen: ScalingPolicy[Any] | None, mode: Mode, cluster: ClusterView | None) -> None:
        if self._controller is not None:
            if self._steps or self._begun:
                self._refuse(self._controller, f"the autoscaler was switched to {OFF if chosen is None else chosen.name}", cluster)
            self._past.extend(self._controller.history)
        self._policy = chosen
        self._controller = None if chosen is None else Controller(chosen, mode, KEPT)

    def decisions(self) -> list[DecisionRecord]:
        """Return all decisions, oldest first; `time` in seconds since the epoch."""
        newest = self._controller.history if self._controller is not None else ()
        return [*self._past, *newest][-KEPT:]

    @property
    def advice(self) -> str | None:
        """The newest decision of a policy that only advises, in a sentence; None if it would change nothing."""
        look, controller = self.last_observation, self._controller
        if look is None or controller is None or controller.mode == "act" or not look.decided.changes or self._job.state.final:
            return None
        return f"{look.advice}; {ADVISED}"

    @property
    def age_of_nodes(self) -> float | None:
        """The greatest age in seconds of the list of nodes that the policy needs at a tick; None if it needs none."""
        if self._controller is None:
            return None
        return NODES_SECONDS if self._controller.mode == "act" else self._settings.interval_s

    @property
    def last_observation(self) -> DecisionRecord | None:
        """The newest look of the policy that scales now, also one that led to nothing."""
        return None if self._controller is None else self._controller.last_observation

    def advance(self, cluster: ClusterView | None) -> None:
        """Ask the policy for a decision, or take the next step of the last one, if it is time to."""
        controller, now = self._controller, self._job.now
        if self._job.state.final and controller is not None and (self._steps or self._begun):
            self._refuse(controller, "the job has ended", cluster)
        if self._job.state is not JobState.RUNNING or self._busy():
            self._quiet = self._warm = None
            if controller is not None and self._seen_running:
                controller.disturbed()
            return
        self._seen_running = True
        quiet = self._quiet = now if self._quiet is None else self._quiet
        if self._warm is None and now - quiet >= self._settings.warm_up_s:
            self._warm = {worker: self._job.metrics.newest(worker) for worker in self._job.workers}
        if controller is None:
            return
        if self._steps or self._begun:
            self._go_on(controller, cluster)
        elif controller.due(now) and now - quiet >= self._settings.warm_up_s + self._settings.interval_s:
            self._observe(controller, cluster)

    def _fresh(self, worker: WorkerId) -> list[WorkerWindow]:
        """Return the windows of the newest interval that began after the warm-up. A worker that is slow with a batch has few long
        ones.

        The first window after the warm-up does not count, since it had begun before.
        """
        warm = (self._warm or {}).get(worker)
        since = [w for w in self._job.metrics.history(worker) if warm is None or w.start > warm.start][1:]
        length = 0.0
        for first in range(len(since) - 1, -1, -1):
            length += since[first].length
            if length >= self._settings.interval_s:
                return since[first:]
        return since

    def _observe(self, controller: Controller, cluster: ClusterView | None) -> None:
        job = self._job
        windows = {worker: self._fresh(worker) for worker in job.workers}
        if not all(windows.values()):
            return
        try:
            seen = observed(scaled_stages(job.plan), windows, self._settings, self._nodes.of_workers(cluster))
            decision = controller.observe(job.now, seen)
        except EvenflowError as error:
            problem = f"job `{job.name}` is no longer scaled: its policy {controller.policy} can't decide: {error}"
            self._switch(None, controller.mode, cluster)
            job.emit(Warn(problem))
            return
        if decision is not None:
            self._steps.extend(steps_of(decision, controller.history[-1].seen))
            self._nodes.welcome(decision.add_nodes, cluster)
            self._go_on(controller, cluster)

    def _go_on(self, controller: Controller, cluster: ClusterView | None) -> None:
        """End the step under way, since nothing moves any more, and begin the next."""
        if self._begun is not None:
            step, operation = self._begun
            if not operation.succeeded:
                self._refuse(controller, f"{step}: {operation.problem or NOT_ALL_MOVED}", cluster)
                return
            self._begun = None
        if not self._steps:
            self._nodes.welcome(0, cluster)
            controller.carried_out(self._job.now)
            return
        step = self._steps.popleft()
        try:
            self._begun = step, self._begin(controller, step, cluster)
        except EvenflowError as error:
            self._refuse(controller, f"{step}: {error}", cluster)

    def _begin(self, controller: Controller, step: ScalingStep, cluster: ClusterView | None) -> Operation[Any]:
        if step.node is not None:
            return self._nodes.scale_in(cluster, step.node)
        if step.parallelism is None:
            balancer = next(iter(BALANCERS)) if self._job.config.balance.policy == OFF else self._job.config.balance.policy
            return self._reconfiguration.rebalance(step.operator, balancer, None, f"for {controller.policy}")
        reason = f"{controller.policy}, automatic: {controller.history[-1].decided.reason}"
        return self._operators.scale(step.operator, step.parallelism, reason=reason)

    def _refuse(self, controller: Controller, why: str, cluster: ClusterView | None) -> None:
        self._steps.clear()
        self._begun = None
        self._nodes.welcome(0, cluster)
        controller.not_carried_out(self._job.now, why)
