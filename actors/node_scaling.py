"""Adding nodes to a job and giving them back: what the steps are and when each is over.

Out: workers for the operators for which one more raises the output most (Stela), on the new nodes. In: the node that the output needs least
gives up its workers; each operator loses those that are there, while the stream goes on. Those whose number stays go on in processes on
other nodes, which are started first and take over through a checkpoint (`scheduler/emptying.py` says which).
Used by the supervisor, under its lock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ..engine.errors import ClusterError, JobBusyError, JobNotRunningError, RequestError
from ..engine.plan.rescale import check_parallelism
from ..engine.time.duration import seconds
from ..scheduler.checkpoints import CheckpointState
from ..scheduler.config import JobConfig
from ..scheduler.emptying import emptying
from ..scheduler.job_effects import JobState
from ..scheduler.newest import Newest
from ..scheduler.placement import Node, short
from ..scheduler.scaling.observed import observed
from ..scheduler.scaling.settings import PolicySettings
from ..scheduler.scaling.snapshot import DataflowSnapshot
from ..scheduler.scaling.stela import Stela, node_sums
from ..state.errors import EvenflowError
from .cluster_view import Cluster

if TYPE_CHECKING:
    from .supervisor import Supervisor


class NodeScalingState(StrEnum):
    """What it is at; the last two are final."""

    SCALING = "scaling operators"
    STARTING = "starting processes on other nodes"
    SAVING = "taking a checkpoint"
    REPLACING = "replacing workers"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NodeScalingReport:
    """What `job.scale_out()` and `job.scale_in()` give: the nodes that came or went, the operators' workers before and after, the
    workers that other processes took over, seconds until all was done; `problem` says why it failed.
    """

    number: int
    added: tuple[str, ...]
    removed: str | None
    parallelism: Mapping[str, tuple[int, int]]
    replaced: tuple[str, ...]
    reason: str
    state: NodeScalingState
    seconds: float | None
    problem: str | None = None

    def __str__(self) -> str:
        changes = [f"{operator} {before} to {after} workers" for operator, (before, after) in self.parallelism.items()]
        changes += [f"{', '.join(self.replaced)} went on elsewhere"] * bool(self.replaced)
        nodes = ", ".join(map(short, self.added)) if self.removed is None else short(self.removed)
        taken = "" if self.seconds is None else f" in {self.seconds:.3f} s"
        what = f"node {nodes} {'added' if self.removed is None else 'given back'}{taken}: {'; '.join(changes)}"
        why = self.reason if self.problem is None else f"{self.reason}; {self.problem}"
        return f"{what}\n{self.number}: {why}"


@dataclass(slots=True)
class _Order:
    """`steps`: operators that are yet to be scaled; `scaling`, `checkpoint`: numbers of what was begun."""

    report: NodeScalingReport
    begun: float
    steps: deque[tuple[str, int]]
    scaling: int | None = None
    checkpoint: int | None = None
    deadline: float = 0.0


class NodeScaling:
    """One at a time for a job. `cluster` is None where there are no nodes."""

    def __init__(self, supervisor: Supervisor, config: JobConfig, cluster: Cluster | None) -> None:
        self._supervisor, self._config, self._cluster = supervisor, config, cluster
        self._orders = Newest[_Order]()
        self._given_back: set[str] = set()

    @property
    def busy(self) -> bool:
        """Whether one is under way."""
        return bool(self._orders) and self._orders[-1].report.seconds is None

    def reports(self) -> list[NodeScalingReport]:
        """The newest of the job, oldest first."""
        return [order.report for order in self._orders]

    def report(self, number: int) -> NodeScalingReport:
        """One of the newest."""
        return self._orders[number].report

    def of_workers(self) -> dict[str, str]:
        """The node of each worker; nothing where there are no nodes, or not every worker has a process yet."""
        places = {} if self._cluster is None else {worker: place.node for worker, place in self._cluster.places().items()}
        return places if places.keys() >= set(self._supervisor.core.workers) else {}

    def scale_out(self, count: int) -> int:
        """Begin to use `count` nodes more; the number of the order.

        As many workers are added as the nodes have slots, fewer if the operators need no more. Raises RequestError if the job can't be
        scaled now, has no nodes, the cluster has not so many with room, or no operator is congested.
        """
        cluster = self._available(count)
        cpus, free = self._config.worker.cpus, self._unused(cluster)
        if len(free) < count:
            self._ask(cluster, count)
            raise RequestError(
                f"job `{self._name}`: {len(free)} of {count} nodes that it has no workers on have room; "
                "Ray's autoscaler, where there is one, was asked for more"
            )
        chosen = free[:count]
        slots = sum(node.free_slots(cpus) for node in chosen)
        decision, _ = Stela().decide(self._snapshot(slots=slots), None)
        if not decision.parallelism:
            raise RequestError(
                f"job `{self._name}` is given no node: {decision.reason}; `job.scale` gives an operator more workers all the same"
            )
        names = tuple(node.name for node in chosen)
        report = self._report(decision.parallelism, added=names, reason=decision.reason)
        self._begin(report, reversed(list(decision.parallelism.items())))
        self._avoid(cluster, self._given_back.difference(names))
        return report.number

    def welcome(self, count: int) -> None:
        """Let workers that join from now on go to `count` nodes that the job isn't on, where there are such; others are asked for.

        0: to any node again.
        """
        if self._cluster is None:
            return
        free = self._unused(self._cluster)[:count]
        if len(free) < count:
            self._ask(self._cluster, count - len(free))
        names = tuple(node.name for node in free)
        self._cluster.prefer(names)
        self._avoid(self._cluster, self._given_back.difference(names))

    def scale_in(self, node: str | None = None) -> int:
        """Begin to give a node back, that with the lowest sum of effective throughput percentages if none is named; the order's number.

        Raises RequestError if the job can't be scaled now, has no workers on the node or none on others, or one there that can't leave.
        """
        cluster = self._available(1)
        places = self.of_workers()
        sums = node_sums(self._snapshot(nodes=places))
        if len(sums) < 2:
            raise RequestError(f"job `{self._name}` can't give a node back: its workers are on {len(sums)}, and one has to stay")
        plan = self._supervisor.core.plan
        workers = {stage.name: stage.parallelism for stage in plan.stages}
        scalable = {stage.name for stage in plan.stages if stage.can_be_scaled}
        if node is not None and node not in sums:
            raise RequestError(f"job `{self._name}` can't give node {short(node)} back: it has no workers there")
        plans = [emptying(workers, scalable, places, each) for each in (sums if node is None else [node])]
        possible = [one for one in plans if not one.replaced]
        chosen = plans[0] if self._saves else next(iter(possible), plans[0])
        if chosen.replaced:
            self._check_saved(
                f"{', '.join(chosen.replaced)} on node {short(chosen.node)} can't leave, since one worker of each operator stays"
            )
        ranking = ", ".join(f"{short(each)} {total:.2f}" for each, total in sums.items())
        report = self._report(chosen.parallelism, removed=chosen.node, replaced=chosen.replaced, reason=f"sums of ETPs: {ranking}")
        self._begin(report, chosen.parallelism.items())
        self._avoid(cluster, self._given_back | {chosen.node})
        return report.number

    def tick(self) -> None:
        """Go on with what is under way."""
        if not self.busy or self._cluster is None:
            return
        order, state = self._orders[-1], self._supervisor.core.state
        try:
            if state.final:
                raise JobNotRunningError("the job has ended")
            if state is JobState.RUNNING and not self._supervisor.elastic.scaling:
                self._go_on(order, self._cluster)
        except EvenflowError as error:
            self._end(order, str(error))

    def _go_on(self, order: _Order, cluster: Cluster) -> None:
        if order.report.removed is not None and order.report.state is not NodeScalingState.SCALING and not self._left(order, cluster):
            self._end(order, None)  # perhaps because the job lost a worker meanwhile, and has gone on without the node
        elif order.report.state is NodeScalingState.SCALING:
            self._scale_next(order, cluster)
        elif order.report.state is NodeScalingState.STARTING:
            self._await_processes(order, cluster)
        elif order.report.state is NodeScalingState.SAVING:
            self._await_checkpoint(order)
        else:
            self._finish(order, cluster)

    def _scale_next(self, order: _Order, cluster: Cluster) -> None:
        if order.scaling is not None:
            problem = self._supervisor.elastic.report(order.scaling).problem
            if problem is not None:
                raise RequestError(problem)
            order.scaling = None
        if order.steps:
            operator, workers = order.steps.popleft()
            cluster.prefer(order.report.added)
            order.scaling = self._supervisor.elastic.begin(operator, workers, reason=f"{self._what(order)}: {order.report.reason}")
        elif order.report.replaced:
            cluster.reserve(len(order.report.replaced))
            order.deadline = time.monotonic() + seconds(self._config.worker.start_timeout)
            self._to(order, NodeScalingState.STARTING)
        else:
            self._end(order, None)

    def _await_processes(self, order: _Order, cluster: Cluster) -> None:
        if cluster.reserved():
            self._save(order)
        elif time.monotonic() > order.deadline:
            raise ClusterError(
                f"the processes for {', '.join(order.report.replaced)} did not start within {self._config.worker.start_timeout}"
            )

    def _save(self, order: _Order) -> None:
        order.checkpoint = self._supervisor.checkpoint()
        self._to(order, NodeScalingState.SAVING)

    def _await_checkpoint(self, order: _Order) -> None:
        found = next((report for report in self._supervisor.checkpoints() if report.number == order.checkpoint), None)
        if found is None or found.state in (CheckpointState.PENDING, CheckpointState.SAVING):
            return
        if found.state is not CheckpointState.COMPLETE:
            raise RequestError(f"checkpoint {found.number}, from which workers were to go on elsewhere, has failed: {found.problem}")
        self._to(order, NodeScalingState.REPLACING)
        self._supervisor.redeploy()

    def _finish(self, order: _Order, cluster: Cluster) -> None:
        """The job runs again, from the checkpoint."""
        left = self._left(order, cluster)
        self._end(order, f"{', '.join(left)} stayed on node {short(order.report.removed or '')}" if left else None)

    def _left(self, order: _Order, cluster: Cluster) -> list[str]:
        """Workers on the node that is given back."""
        return [worker for worker, place in cluster.places().items() if place.node == order.report.removed]

    def _unused(self, cluster: Cluster) -> list[Node]:
        """Nodes with room that the job has no workers on, those with most room first."""
        used, cpus = {place.node for place in cluster.places().values()}, self._config.worker.cpus
        return sorted((n for n in cluster.nodes() if n.name not in used and n.free_slots(cpus)), key=lambda n: -n.free_slots(cpus))

    def _ask(self, cluster: Cluster, count: int) -> None:
        """Ask Ray's autoscaler for `count` nodes, each for as many workers as those have that the job is on."""
        places = cluster.places().values()
        cluster.ask(count * max(1, len(places) // max(1, len({place.node for place in places}))))

    def _avoid(self, cluster: Cluster, nodes: set[str]) -> None:
        self._given_back = nodes
        cluster.avoid(nodes)

    def _available(self, count: int) -> Cluster:
        """Raises RequestError if nothing can be begun now."""
        core = self._supervisor.core
        if self._cluster is None:
            raise RequestError(f"job `{self._name}` runs in one process and has no nodes: run it on Ray")
        if count < 1:
            raise RequestError(f"job `{self._name}` can't be given {count} nodes; the least is 1")
        if core.state is not JobState.RUNNING or core.migrations.current is not None or self._supervisor.elastic.busy:
            doing = "scales or moves something already" if core.state is JobState.RUNNING else f"is {core.state.value}"
            raise JobBusyError(f"job `{self._name}` {doing}: nodes can come and go while it runs and nothing moves")
        return self._cluster

    @property
    def _name(self) -> str:
        return self._supervisor.core.name

    @property
    def _saves(self) -> bool:
        return self._supervisor.core.settings.save_state

    def _check_saved(self, why: str) -> None:
        if not self._saves:
            raise RequestError(f"job `{self._name}`: {why}; with CheckpointConfig(dir=...) they would go on elsewhere from a checkpoint")

    def _snapshot(self, slots: int | None = None, nodes: Mapping[str, str] | None = None) -> DataflowSnapshot:
        metrics, core = self._supervisor.metrics, self._supervisor.core
        windows = {worker: metrics.history(worker)[-self._config.balance.windows :] for worker in core.workers}
        settings: PolicySettings = replace(self._config.autoscale.policy_settings(), slots=slots)
        return replace(observed(core.plan, windows, settings, nodes), settings=settings)

    def _report(
        self,
        wanted: Mapping[str, int],
        *,
        added: tuple[str, ...] = (),
        removed: str | None = None,
        replaced: tuple[str, ...] = (),
        reason: str,
    ) -> NodeScalingReport:
        plan = self._supervisor.core.plan
        for operator, workers in wanted.items():
            check_parallelism(plan, plan.stage_of(operator), workers)
        changes = {name: (plan.stage_of(name).parallelism, workers) for name, workers in wanted.items()}
        return NodeScalingReport(len(self._orders), added, removed, changes, replaced, reason, NodeScalingState.SCALING, None)

    def _begin(self, report: NodeScalingReport, steps: Iterable[tuple[str, int]]) -> None:
        self._orders.append(_Order(report, time.monotonic(), deque(steps)))

    def _what(self, order: _Order) -> str:
        removed, added = order.report.removed, ", ".join(map(short, order.report.added))
        return f"node {short(removed)} is given back" if removed is not None else f"node {added} is added"

    def _to(self, order: _Order, state: NodeScalingState) -> None:
        order.report = replace(order.report, state=state)

    def _end(self, order: _Order, problem: str | None) -> None:
        state = NodeScalingState.DONE if problem is None else NodeScalingState.FAILED
        order.report = replace(order.report, state=state, seconds=time.monotonic() - order.begun, problem=problem)
        if self._cluster is not None:
            self._cluster.prefer(())
            self._cluster.reserve(0)
            if problem is not None and order.report.removed is not None:
                self._avoid(self._cluster, self._given_back - {order.report.removed})
