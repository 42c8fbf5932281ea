"""Adding nodes to a job and returning them: the steps, and when each is over.

Out: the node policy chooses operators, which get workers on the new nodes (`scheduler/policies/nodes/node_policies.py`).

In: the node that the policy names returns its workers. Each operator loses the workers on that node while the stream continues.
Workers whose index remains continue in processes on other nodes. Those processes start first and take over through a checkpoint
(`scheduler/policies/nodes/node_plans.py` selects the workers). A node that Ray drains is emptied in the same way, without a
request: all its workers continue on other nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...engine.errors import ClusterError, JobBusyError, JobNotRunningError, RequestError
from ...engine.plan.rescale import check_parallelism
from ...engine.protocol.ids import CheckpointNumber, WorkerId
from ...engine.time.duration import seconds
from ..policies.dataflow.scaled_stage import scaled_stages
from ..policies.nodes.node_plans import NodePlan, PlacedJob, TooFewNodesError
from ..policies.nodes.node_policies import StelaNodes
from ..policies.nodes.placement import ClusterView, short
from ..protocol.effects import AskForRoom, JobState, Reserve, UseNodes, Warn
from ..protocol.reports import CheckpointState, NodeScalingReport, NodeScalingState
from ..record.job_record import JobRecord
from ..record.operation import Operation
from .checkpointing import Checkpointing, Lifecycle
from .operator_scaling import OperatorScaling, Scaling
from .stepwise import Stepwise

DRAIN_RETRY = 5.0
"""Seconds after which the job tries again to empty a node that Ray drains, for example because no other had room."""


@dataclass(slots=True)
class NodeChange(Operation[NodeScalingState]):
    """An addition of nodes, or the return of one.

    `parallelism`: the workers of each operator that changes, before and after; `replaced`: workers that other processes take
    over. `steps`: operators still to be scaled; `scaling`, `checkpoint`: the step under way.
    """

    added: tuple[str, ...]
    removed: str | None
    parallelism: Mapping[str, tuple[int, int]]
    replaced: tuple[WorkerId, ...]
    steps: deque[tuple[str, int]]
    scaling: Scaling | None = None
    checkpoint: CheckpointNumber | None = None
    deadline: float = 0.0

    def __str__(self) -> str:
        if self.removed is not None:
            return f"node {short(self.removed)} is given back"
        return f"node {', '.join(map(short, self.added))} is added"

    def report(self) -> NodeScalingReport:
        """Return the change as `job.scale_out()` and `job.scale_in()` show it."""
        return NodeScalingReport(
            number=self.number,
            state=self.state,
            reason=self.reason,
            began_at=self.begun,
            seconds=self.seconds,
            problem=self.problem,
            added=self.added,
            removed=self.removed,
            parallelism=self.parallelism,
            replaced=self.replaced,
        )


class NodeScaling(Stepwise[NodeChange]):
    """Adds nodes to a job and returns them, one change at a time. `cluster` is None where there are no nodes."""

    def __init__(self, job: JobRecord, lifecycle: Lifecycle, checkpointing: Checkpointing, operators: OperatorScaling) -> None:
        super().__init__(job)
        self._lifecycle, self._checkpointing, self._operators = lifecycle, checkpointing, operators
        self._avoided: frozenset[str] = frozenset()
        self._preferred: frozenset[str] = frozenset()
        self._next_drain = 0.0
        self._warned = set[str]()
        """Nodes that could not be emptied."""

    def of_workers(self, cluster: ClusterView | None) -> dict[WorkerId, str]:
        """Return the node of each worker; empty where there are no nodes, or a worker has no process yet."""
        return {} if cluster is None else self._placed(cluster).nodes

    def scale_out(self, count: int, cluster: ClusterView | None, policy: str) -> NodeChange:
        """Begin to use `count` more nodes.

        As many workers are added as the nodes have slots, fewer if the operators need no more. Raises RequestError if the job
        can't be scaled now, has no nodes, the cluster has too few nodes with room, no operator is congested, or for an unknown
        policy.
        """
        placed = self._placed(self._available(count, cluster))
        try:
            plan = placed.more_nodes(count, policy)
        except TooFewNodesError as error:
            self._job.emit(AskForRoom(count))
            raise RequestError(
                f"{error}; Ray's autoscaler, if there is one, has been asked for more: call again when they are there"
            ) from error
        change = self._begin(plan, reversed([(operator, after) for operator, (_, after) in plan.parallelism.items()]))
        self._use(avoid=self._avoided.difference(plan.added))
        return change

    def welcome(self, count: int, cluster: ClusterView | None) -> None:
        """Let workers that join from now on go to `count` nodes that the job isn't on. Ask for the nodes that are missing.

        0: to any node again.
        """
        if cluster is None:
            return
        free = self._placed(cluster).unused[:count]
        if len(free) < count:
            self._job.emit(AskForRoom(count))
        names = frozenset(node.name for node in free)
        self._use(avoid=self._avoided - names, prefer=names)

    def scale_in(self, cluster: ClusterView | None, node: str | None = None, policy: str = StelaNodes.name) -> NodeChange:
        """Begin to give back a node, by default the one that the policy ranks first.

        Raises RequestError if the job can't be scaled now, has no workers on the node or none on others, or one there that can't
        leave.
        """
        plan = self._placed(self._available(1, cluster)).one_node_less(node, policy)
        assert plan.removed is not None
        change = self._begin(plan, [(operator, after) for operator, (_, after) in plan.parallelism.items()])
        self._use(avoid=self._avoided | {plan.removed})
        return change

    def advance(self, cluster: ClusterView | None) -> None:
        """Take the next step of the change under way; without one, begin to empty a node that Ray drains."""
        if cluster is not None and self._job.state is JobState.RUNNING and self._job.now >= self._next_drain:
            there = {place.node for place in cluster.places.values()}
            for node in sorted(there.intersection(cluster.draining) - self._warned):
                self._empty(node, cluster)
        super().advance(cluster)

    def _empty(self, node: str, cluster: ClusterView) -> None:
        """Begin to empty a node that Ray drains, unless the job is busy. Warn, once for each node, if it can't be emptied."""
        try:
            plan = self._placed(self._available(1, cluster)).emptied(node)
        except JobBusyError:
            return
        except RequestError as error:
            self._warned.add(node)
            self._job.emit(Warn(f"Ray drains node {short(node)}, on which workers of the job stay until it goes: {error}"))
            return
        self._next_drain = self._job.now + DRAIN_RETRY
        self._begin(plan, [(operator, after) for operator, (_, after) in plan.parallelism.items()])
        self._use(avoid=self._avoided | {node})

    def not_reserved(self, problem: str) -> None:
        """End the change under way if it waits for processes, since there is no room for them."""
        current = self.operations.current
        if current is not None and current.state is NodeScalingState.STARTING:
            self._end(current, problem)

    def _step(self, operation: NodeChange) -> Scaling | None:
        return operation.scaling

    def _next(self, operation: NodeChange, cluster: ClusterView | None) -> None:
        if self._job.state.final:
            raise JobNotRunningError("the job has ended")
        if cluster is None or self._job.state is not JobState.RUNNING:
            return
        if operation.removed is not None and operation.state is not NodeScalingState.SCALING and not self._left(operation, cluster):
            self._end(operation, None)  # perhaps because the job lost a worker meanwhile, and has gone on without the node
        elif operation.state is NodeScalingState.SCALING:
            self._scale_next(operation)
        elif operation.state is NodeScalingState.STARTING:
            self._await_processes(operation, cluster)
        elif operation.state is NodeScalingState.SAVING:
            self._await_checkpoint(operation)
        else:
            self._finish(operation, cluster)

    def _scale_next(self, change: NodeChange) -> None:
        if change.scaling is not None and change.scaling.problem is not None:
            raise RequestError(change.scaling.problem)
        if change.steps:
            operator, workers = change.steps.popleft()
            self._use(prefer=frozenset(change.added))
            change.scaling = self._operators.scale(operator, workers, reason=f"{change}: {change.reason}")
        elif change.replaced:
            change.deadline = self._job.now + seconds(self._job.config.worker.start_timeout)
            change.state = NodeScalingState.STARTING
            self._job.emit(Reserve(len(change.replaced)))
        else:
            self._end(change, None)

    def _await_processes(self, change: NodeChange, cluster: ClusterView) -> None:
        if cluster.reserved:
            change.checkpoint = self._checkpointing.request(f"for node scaling {change.number}")
            change.state = NodeScalingState.SAVING
        elif self._job.now > change.deadline:
            raise ClusterError(
                f"the processes for {', '.join(change.replaced)} did not start within {self._job.config.worker.start_timeout}"
            )

    def _await_checkpoint(self, change: NodeChange) -> None:
        found = next((report for report in self._checkpointing.reports() if report.number == change.checkpoint), None)
        if found is None or found.state in (CheckpointState.PENDING, CheckpointState.SAVING, CheckpointState.COMMITTING):
            return
        if found.state is not CheckpointState.COMPLETE:
            raise RequestError(f"checkpoint {found.number}, from which workers were to resume on other nodes, has failed: {found.problem}")
        change.state = NodeScalingState.REPLACING
        self._lifecycle.go_back()

    def _finish(self, change: NodeChange, cluster: ClusterView) -> None:
        """End the change: the job runs again, from the checkpoint."""
        left = self._left(change, cluster)
        self._end(change, f"{', '.join(left)} stayed on node {short(change.removed or '')}" if left else None)

    def _left(self, change: NodeChange, cluster: ClusterView) -> list[WorkerId]:
        """Return the workers on the node that is given back."""
        return [worker for worker, place in cluster.places.items() if place.node == change.removed]

    def _use(self, *, avoid: frozenset[str] | None = None, prefer: frozenset[str] | None = None) -> None:
        """Have new processes avoid, or prefer, these nodes; None for as before."""
        wanted = (self._avoided if avoid is None else avoid, self._preferred if prefer is None else prefer)
        if wanted != (self._avoided, self._preferred):
            self._avoided, self._preferred = wanted
            self._job.emit(UseNodes(*wanted))

    def _available(self, count: int, cluster: ClusterView | None) -> ClusterView:
        """Return the cluster. Raises RequestError if no change can begin now."""
        job = self._job
        if cluster is None:
            raise RequestError(f"job `{job.name}` runs in one process and has no nodes: run it on Ray")
        if count < 1:
            raise RequestError(f"job `{job.name}` can't be given {count} nodes; the least is 1")
        busy = job.migrations.current is not None or job.rescaling is not None or self._operators.busy or self.busy
        if job.state is not JobState.RUNNING or busy:
            doing = "scales or moves something already" if job.state is JobState.RUNNING else f"is {job.state.value}"
            raise JobBusyError(f"job `{job.name}` {doing}: nodes can come and go while it runs and nothing moves")
        return cluster

    def _placed(self, cluster: ClusterView) -> PlacedJob:
        job = self._job
        windows = {worker: job.metrics.history(worker)[-job.config.balance.windows :] for worker in job.workers}
        settings, cpus = job.config.autoscale.policy_settings(), job.config.worker.reserved
        return PlacedJob(job.name, scaled_stages(job.plan), windows, settings, cluster, cpus, job.config.checkpoint.saves_state)

    def _begin(self, plan: NodePlan, steps: Iterable[tuple[str, int]]) -> NodeChange:
        job = self._job
        for operator, (_, workers) in plan.parallelism.items():
            check_parallelism(job.plan, job.plan.stage_of(operator), workers)
        change = NodeChange(
            plan.added,
            plan.removed,
            plan.parallelism,
            plan.replaced,
            deque(steps),
            number=len(self.operations),
            state=NodeScalingState.SCALING,
            reason=plan.reason,
            begun=job.now,
        )
        self.operations.append(change)
        return change

    def _end(self, operation: NodeChange, problem: str | None) -> None:
        operation.end(NodeScalingState.DONE if problem is None else NodeScalingState.FAILED, self._job.now, problem)
        kept = frozenset({operation.removed} if problem is not None and operation.removed is not None else ())
        self._use(avoid=self._avoided - kept, prefer=frozenset())
        self._job.emit(Reserve(0))
