"""Adding nodes to a job and giving them back: what the steps are and when each is over.

Out: the node policy chooses operators, which get workers on the new nodes (`scheduler/policies/nodes/node_policies.py`).

In: the node that the policy names returns its workers. Each operator loses the workers on that node while the stream continues. Workers
whose index remains continue in processes on other nodes. Those processes start first and take over through a checkpoint
(`scheduler/policies/nodes/node_drain.py` selects the workers).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...engine.errors import ClusterError, JobBusyError, JobNotRunningError, RequestError
from ...engine.plan.rescale import check_parallelism
from ...engine.protocol.ids import CheckpointNumber, WorkerId
from ...engine.time.duration import seconds
from ...state.errors import EvenflowError
from ..policies.dataflow.scaled_stage import scaled_stages
from ..policies.nodes.cluster_view import ClusterView
from ..policies.nodes.node_plans import NodePlan, PlacedJob, TooFewNodesError
from ..policies.nodes.node_policies import StelaNodes
from ..policies.nodes.placement import short
from ..protocol.effects import AskForRoom, JobState, Reserve, UseNodes
from ..protocol.reports import CheckpointState, NodeScalingReport, NodeScalingState
from ..record.job_record import JobRecord
from ..record.newest import Newest
from .checkpointing import Checkpointing
from .lifecycle import Lifecycle
from .operator_scaling import OperatorScaling


@dataclass(slots=True)
class _Order:
    """`steps`: operators that are yet to be scaled; `scaling`, `checkpoint`: numbers of what was begun."""

    report: NodeScalingReport
    steps: deque[tuple[str, int]]
    scaling: int | None = None
    checkpoint: CheckpointNumber | None = None
    deadline: float = 0.0


class NodeScaling:
    """The node scalings of one job, one at a time. `cluster` is None where there are no nodes."""

    def __init__(self, job: JobRecord, lifecycle: Lifecycle, checkpointing: Checkpointing, operators: OperatorScaling) -> None:
        self._job, self._lifecycle, self._checkpointing, self._operators = job, lifecycle, checkpointing, operators
        self._orders = Newest[_Order]()
        self._avoided: frozenset[str] = frozenset()
        self._preferred: frozenset[str] = frozenset()

    @property
    def busy(self) -> bool:
        """Whether one is under way."""
        newest = self._orders.newest
        return newest is not None and not newest.report.over

    def reports(self) -> list[NodeScalingReport]:
        """The newest of the job, oldest first."""
        return [order.report for order in self._orders]

    def report(self, number: int) -> NodeScalingReport:
        """One of the newest."""
        return self._orders[number].report

    def of_workers(self, cluster: ClusterView | None) -> dict[WorkerId, str]:
        """The node of each worker; nothing where there are no nodes, or not every worker has a process yet."""
        return {} if cluster is None else self._placed(cluster).nodes

    def scale_out(self, count: int, cluster: ClusterView | None, policy: str) -> int:
        """Begin to use `count` more nodes; the order's number.

        As many workers are added as the nodes have slots, fewer if the operators need no more. Raises RequestError if the job can't be
        scaled now, has no nodes, the cluster has too few nodes with room, no operator is congested, or for an unknown policy.
        """
        placed = self._placed(self._available(count, cluster))
        try:
            plan = placed.more_nodes(count, policy)
        except TooFewNodesError as error:
            self._ask(placed.cluster, count)
            raise RequestError(f"{error}; Ray's autoscaler, where there is one, was asked for more") from error
        report = self._report(plan)
        self._begin(report, reversed([(operator, after) for operator, (_, after) in plan.parallelism.items()]))
        self._use(avoid=self._avoided.difference(plan.added))
        return report.number

    def welcome(self, count: int, cluster: ClusterView | None) -> None:
        """Let workers that join from now on go to `count` nodes that the job isn't on, where there are such; others are asked for.

        0: to any node again.
        """
        if cluster is None:
            return
        free = self._placed(cluster).unused[:count]
        if len(free) < count:
            self._ask(cluster, count - len(free))
        names = frozenset(node.name for node in free)
        self._use(avoid=self._avoided - names, prefer=names)

    def scale_in(self, cluster: ClusterView | None, node: str | None = None, policy: str = StelaNodes.name) -> int:
        """Begin to give back a node, by default the one that the policy ranks first; the order's number.

        Raises RequestError if the job can't be scaled now, has no workers on the node or none on others, or one there that can't leave.
        """
        plan = self._placed(self._available(1, cluster)).one_node_less(node, policy)
        assert plan.removed is not None
        report = self._report(plan)
        self._begin(report, [(operator, after) for operator, (_, after) in plan.parallelism.items()])
        self._use(avoid=self._avoided | {plan.removed})
        return report.number

    def advance(self, cluster: ClusterView | None) -> None:
        """Go on with what is under way."""
        if not self.busy or cluster is None:
            return
        order, state = self._orders[-1], self._job.state
        try:
            if state.final:
                raise JobNotRunningError("the job has ended")
            if state is JobState.RUNNING and not self._operators.busy:
                self._go_on(order, cluster)
        except EvenflowError as error:
            self._end(order, str(error))

    def not_reserved(self, problem: str) -> None:
        """The processes that were to be started have no room."""
        if self.busy and self._orders[-1].report.state is NodeScalingState.STARTING:
            self._end(self._orders[-1], problem)

    def _go_on(self, order: _Order, cluster: ClusterView) -> None:
        if order.report.removed is not None and order.report.state is not NodeScalingState.SCALING and not self._left(order, cluster):
            self._end(order, None)  # perhaps because the job lost a worker meanwhile, and has gone on without the node
        elif order.report.state is NodeScalingState.SCALING:
            self._scale_next(order)
        elif order.report.state is NodeScalingState.STARTING:
            self._await_processes(order, cluster)
        elif order.report.state is NodeScalingState.SAVING:
            self._await_checkpoint(order)
        else:
            self._finish(order, cluster)

    def _scale_next(self, order: _Order) -> None:
        if order.scaling is not None:
            problem = self._operators.report(order.scaling).problem
            if problem is not None:
                raise RequestError(problem)
            order.scaling = None
        if order.steps:
            operator, workers = order.steps.popleft()
            self._use(prefer=frozenset(order.report.added))
            order.scaling = self._operators.scale(operator, workers, reason=f"{self._what(order)}: {order.report.reason}")
        elif order.report.replaced:
            order.deadline = self._job.now + seconds(self._job.config.worker.start_timeout)
            self._to(order, NodeScalingState.STARTING)
            self._job.emit(Reserve(len(order.report.replaced)))
        else:
            self._end(order, None)

    def _await_processes(self, order: _Order, cluster: ClusterView) -> None:
        if cluster.reserved:
            order.checkpoint = self._checkpointing.ask(f"for node scaling {order.report.number}")
            self._to(order, NodeScalingState.SAVING)
        elif self._job.now > order.deadline:
            raise ClusterError(
                f"the processes for {', '.join(order.report.replaced)} did not start within {self._job.config.worker.start_timeout}"
            )

    def _await_checkpoint(self, order: _Order) -> None:
        found = next((report for report in self._checkpointing.reports() if report.number == order.checkpoint), None)
        if found is None or found.state in (CheckpointState.PENDING, CheckpointState.SAVING, CheckpointState.COMMITTING):
            return
        if found.state is not CheckpointState.COMPLETE:
            raise RequestError(f"checkpoint {found.number}, from which workers were to go on elsewhere, has failed: {found.problem}")
        self._to(order, NodeScalingState.REPLACING)
        self._lifecycle.go_back()

    def _finish(self, order: _Order, cluster: ClusterView) -> None:
        """The job runs again, from the checkpoint."""
        left = self._left(order, cluster)
        self._end(order, f"{', '.join(left)} stayed on node {short(order.report.removed or '')}" if left else None)

    def _left(self, order: _Order, cluster: ClusterView) -> list[WorkerId]:
        """Workers on the node that is given back."""
        return [worker for worker, place in cluster.places.items() if place.node == order.report.removed]

    def _ask(self, cluster: ClusterView, count: int) -> None:
        """Ask Ray's autoscaler for `count` nodes, each for as many workers as those have that the job is on."""
        places = cluster.places.values()
        self._job.emit(AskForRoom(count * max(1, len(places) // max(1, len({place.node for place in places})))))

    def _use(self, *, avoid: frozenset[str] | None = None, prefer: frozenset[str] | None = None) -> None:
        """Have new processes avoid, or prefer, these nodes; None for as before."""
        wanted = (self._avoided if avoid is None else avoid, self._preferred if prefer is None else prefer)
        if wanted != (self._avoided, self._preferred):
            self._avoided, self._preferred = wanted
            self._job.emit(UseNodes(*wanted))

    def _available(self, count: int, cluster: ClusterView | None) -> ClusterView:
        """Raises RequestError if nothing can be begun now."""
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
        settings, cpus = job.config.autoscale.policy_settings(), job.config.worker.cpus
        return PlacedJob(job.name, scaled_stages(job.plan), windows, settings, cluster, cpus, job.config.checkpoint.saves_state)

    def _report(self, made: NodePlan) -> NodeScalingReport:
        plan = self._job.plan
        for operator, (_, workers) in made.parallelism.items():
            check_parallelism(plan, plan.stage_of(operator), workers)
        return NodeScalingReport(
            number=len(self._orders),
            state=NodeScalingState.SCALING,
            reason=made.reason,
            began_at=self._job.now,
            added=made.added,
            removed=made.removed,
            parallelism=made.parallelism,
            replaced=made.replaced,
        )

    def _begin(self, report: NodeScalingReport, steps: Iterable[tuple[str, int]]) -> None:
        self._orders.append(_Order(report, deque(steps)))

    def _what(self, order: _Order) -> str:
        removed, added = order.report.removed, ", ".join(map(short, order.report.added))
        return f"node {short(removed)} is given back" if removed is not None else f"node {added} is added"

    def _to(self, order: _Order, state: NodeScalingState) -> None:
        order.report = replace(order.report, state=state)

    def _end(self, order: _Order, problem: str | None) -> None:
        state = NodeScalingState.DONE if problem is None else NodeScalingState.FAILED
        seconds = self._job.now - (order.report.began_at or 0.0)
        order.report = replace(order.report, state=state, seconds=seconds, problem=problem)
        kept = frozenset({order.report.removed} if problem is not None and order.report.removed is not None else ())
        self._use(avoid=self._avoided - kept, prefer=frozenset())
        self._job.emit(Reserve(0))
