"""Adding nodes to a job and returning them: the steps, and when each is over.

Out: the node policy chooses operators, which get workers on the new nodes (`scheduler/policies/nodes/node_policies.py`). Nodes that are
not there are asked for, and the change waits for them while Ray's autoscaler starts nodes, for `start_timeout` at most. Nodes that go
again before they have workers are replaced by others.

In: the node that the policy names returns its workers. Each operator loses the workers on that node while the stream continues.
Workers whose index remains continue in processes on other nodes. Those processes start first and take over through a checkpoint
(`scheduler/policies/nodes/node_plans.py` selects the workers). A node that Ray drains is emptied in the same way, without a
request: all its workers continue on other nodes. A coordinator on that node leaves it once the checkpoint is complete: its process ends,
and Ray starts it again elsewhere, with all workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ...engine.errors import ClusterError, JobBusyError, JobNotRunningError, RequestError
from ...engine.plan.rescale import check_parallelism
from ...engine.protocol.ids import WorkerId
from ...engine.time.duration import seconds
from ..load.wait import Wait, WaitKind
from ..policies.dataflow.scaled_stage import scaled_stages
from ..policies.nodes.node_plans import NodePlan, PlacedJob, TooFewNodesError
from ..policies.nodes.node_policies import StelaNodes
from ..policies.nodes.placement import ClusterView, short
from ..protocol.effects import AskForRoom, JobState, LeaveNode, Reserve, UseNodes, Warn
from ..protocol.reports import CheckpointState, NodeScalingState
from ..record.job_record import JobRecord
from .checkpointing import Checkpointing, Lifecycle
from .drained_nodes import DrainedNodes
from .node_change import NodeChange
from .operator_scaling import OperatorScaling, Scaling
from .stepwise import Stepwise

AUTOSCALER_PATIENCE = 12.0
"""Seconds that Ray's autoscaler has to begin to start nodes that a job needs: it looks every five seconds."""

ASK_SECONDS = 1.0
"""Seconds between two looks for nodes that were asked for."""

DRAIN_RETRY = 5.0
"""Seconds after which the job tries again to empty a node that Ray drains, for example because no other had room."""


class NodeScaling(Stepwise[NodeChange]):
    """Adds nodes to a job and returns them, one change at a time. `cluster` is None where there are no nodes."""

    def __init__(self, job: JobRecord, lifecycle: Lifecycle, checkpointing: Checkpointing, operators: OperatorScaling) -> None:
        super().__init__(job)
        self._lifecycle, self._checkpointing, self._operators = lifecycle, checkpointing, operators
        self._avoided: frozenset[str] = frozenset()
        self._preferred: frozenset[str] = frozenset()
        self._next_drain = 0.0
        self._drained = DrainedNodes(job, checkpointing)
        self._warned = set[str]()
        """Nodes that could not be emptied."""

    def of_workers(self, cluster: ClusterView | None) -> dict[WorkerId, str]:
        """Return the node of each worker; empty where there are no nodes, or a worker has no process yet."""
        return {} if cluster is None else self._placed(cluster).nodes

    def scale_out(self, count: int, cluster: ClusterView | None, policy: str) -> NodeChange:
        """Begin to use `count` more nodes.

        As many workers are added as the nodes have slots, fewer if the operators need no more. Too few nodes with room are waited for.
        Raises RequestError if the job can't be scaled now, has no nodes, no operator is congested, for an unknown policy, and for too few
        nodes if workers reserve no CPUs, which tells an autoscaler nothing.
        """
        placed = self._placed(self._available(count, cluster))
        try:
            plan = placed.more_nodes(count, policy)
        except TooFewNodesError as error:
            if not placed.cpus:
                raise RequestError(f"{error}; WorkerConfig(cpus=...), 0 now, would let Ray's autoscaler know of them") from error
            change = self._begin(NodePlan({}, str(error)), ())
            change.policy = policy
            self._wait(change, count)
            return change
        change = self._begin(plan, self._upwards(plan))
        change.policy = policy
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
        if cluster is not None and self._job.state is JobState.RUNNING:
            self._leave_drained(cluster)
        super().advance(cluster)

    def _leave_drained(self, cluster: ClusterView) -> None:
        """Begin to empty a node that Ray drains, and take the checkpoints that are due before it goes."""
        used = {place.node for place in cluster.places.values()}
        there = [node for node in sorted(cluster.draining) if node in used or node == cluster.home]
        current = self.operations.current
        if there and current is not None and current.state is NodeScalingState.WAITING:
            self._end(current, f"Ray drains node {short(there[0])}, which the job leaves first: call again when it has")
        if self._job.now >= self._next_drain:
            for node in there:
                if node not in self._warned:
                    self._empty(node, cluster)
        saving = current is not None and current.state in (NodeScalingState.SAVING, NodeScalingState.REPLACING)
        self._drained.look(there, cluster, saving=saving)

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

    def waits(self) -> tuple[Wait, ...]:
        """Return the nodes that the job waits for, or is leaving because Ray drains them."""
        change = self.operations.current
        if change is None or change.state is not NodeScalingState.WAITING or change.begun is None:
            return self._drained.waits({change.removed: change.problem for change in self.operations if change.problem is not None})
        lasted = self._job.now - change.begun
        asked = f"Ray's autoscaler, if there is one, was asked for {change.wanted} node{'s' * (change.wanted > 1)} {lasted:.0f} s ago"
        return (Wait(WaitKind.NODE, f"scaling out waits for nodes: {change.reason}; {asked}", lasted),)

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
        if operation.removed is not None and operation.state is not NodeScalingState.SCALING and not self._stay(operation, cluster):
            self._end(operation, None)  # perhaps because the job lost a worker meanwhile, and has gone on without the node
        elif operation.state is NodeScalingState.WAITING:
            self._await_nodes(operation, cluster)
        elif operation.state is NodeScalingState.SCALING:
            self._scale_next(operation, cluster)
        elif operation.state is NodeScalingState.STARTING:
            self._await_processes(operation, cluster)
        elif operation.state is NodeScalingState.SAVING:
            self._await_checkpoint(operation, cluster)
        else:
            self._finish(operation, cluster)

    def _await_nodes(self, change: NodeChange, cluster: ClusterView) -> None:
        """Plan with the nodes that were waited for, or ask for them again, in case a worker that joined meanwhile took them."""
        job, now = self._job, self._job.now
        if now < change.next_look or job.migrations.current is not None or job.rescaling is not None:
            return
        change.next_look = now + ASK_SECONDS
        try:
            plan = self._placed(cluster).more_nodes(change.wanted, change.policy)
        except TooFewNodesError as error:
            assert change.begun is not None
            if cluster.starting:
                change.deadline = min(now + AUTOSCALER_PATIENCE, change.begun + self._start_timeout)
            if now > change.deadline:
                raise RequestError(
                    f"{error}; Ray's autoscaler, if there is one, brought no more within {now - change.begun:.0f} s, and is no longer "
                    "asked: is there room for them (`ray status`)? WorkerConfig(start_timeout=...) is the longest wait"
                ) from error
            change.reason = str(error)
            self._job.emit(AskForRoom(change.wanted))
            return
        self._job.emit(AskForRoom(0))
        change.added, change.parallelism, change.reason = plan.added, plan.parallelism, plan.reason
        change.steps, change.state = deque(self._upwards(plan)), NodeScalingState.SCALING
        self._use(avoid=self._avoided.difference(plan.added))

    def _wait(self, change: NodeChange, count: int) -> None:
        """Ask for `count` nodes, and wait for them."""
        assert change.begun is not None
        change.wanted, change.state = count, NodeScalingState.WAITING
        change.deadline = min(self._job.now + AUTOSCALER_PATIENCE, change.begun + self._start_timeout)
        self._job.emit(AskForRoom(count))

    def _scale_next(self, change: NodeChange, cluster: ClusterView) -> None:
        if change.scaling is not None and change.scaling.problem is not None:
            if not self._lost_all_added(change, cluster):
                raise RequestError(change.scaling.problem)
            names = ", ".join(map(short, change.added))
            self._job.emit(Warn(f"node {names} has gone before it had workers; scaling out waits for another"))
            change.scaling = None
            self._use(prefer=frozenset())
            self._wait(change, len(change.added))
            return
        if change.steps:
            operator, workers = change.steps.popleft()
            self._use(prefer=frozenset(change.added))
            change.scaling = self._operators.scale(operator, workers, reason=f"{change}: {change.reason}")
        elif change.replaced or _leads(change.removed, cluster):
            change.deadline = self._job.now + self._start_timeout
            change.state = NodeScalingState.STARTING
            self._job.emit(Reserve(change.replaced))
        else:
            self._end(change, None)

    def _lost_all_added(self, change: NodeChange, cluster: ClusterView) -> bool:
        """Return True if the nodes that were to be added have gone, and there is time to wait for others."""
        assert change.begun is not None
        there = {node.name for node in cluster.nodes}
        return bool(change.added) and not there & set(change.added) and self._job.now < change.begun + self._start_timeout

    def _await_processes(self, change: NodeChange, cluster: ClusterView) -> None:
        if cluster.reserved:
            change.checkpoint = self._checkpointing.request(f"for node scaling {change.number}")
            change.state = NodeScalingState.SAVING
        elif self._job.now > change.deadline:
            raise ClusterError(
                f"the processes for {', '.join(change.replaced)} did not start within {self._job.config.worker.start_timeout}"
            )

    def _await_checkpoint(self, change: NodeChange, cluster: ClusterView) -> None:
        found = next((report for report in self._checkpointing.reports() if report.number == change.checkpoint), None)
        if found is None or found.state in (CheckpointState.PENDING, CheckpointState.SAVING, CheckpointState.COMMITTING):
            return
        if found.state is not CheckpointState.COMPLETE:
            raise RequestError(f"checkpoint {found.number}, from which workers were to resume on other nodes, has failed: {found.problem}")
        change.state = NodeScalingState.REPLACING
        if not _leads(change.removed, cluster):
            self._lifecycle.go_back()
        elif cluster.nodes:
            self._job.emit(LeaveNode())
        else:
            raise ClusterError(f"the coordinator has no other node to go to, and stays on node {short(change.removed or '')}")

    def _finish(self, change: NodeChange, cluster: ClusterView) -> None:
        """End the change: the job runs again, from the checkpoint."""
        left = self._stay(change, cluster)
        self._end(change, f"{', '.join(left)} stayed on node {short(change.removed or '')}" if left else None)

    def _stay(self, change: NodeChange, cluster: ClusterView) -> list[str]:
        """Return the processes on the node that is given back: workers, and the coordinator if it is to leave too."""
        workers: list[str] = [worker for worker, place in cluster.places.items() if place.node == change.removed]
        return [*workers, *["the coordinator"] * _leads(change.removed, cluster)]

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
        moving = job.migrations.current is not None or job.rescaling is not None or job.upgrades.busy
        busy = moving or self._operators.busy or self.busy
        if job.state is not JobState.RUNNING or busy:
            doing = "scales or moves something already" if job.state is JobState.RUNNING else f"is {job.state.value}"
            raise JobBusyError(f"job `{job.name}` {doing}: nodes can come and go while it runs and nothing moves")
        return cluster

    def _placed(self, cluster: ClusterView) -> PlacedJob:
        job = self._job
        windows = {worker: job.metrics.history(worker)[-job.config.balance.windows :] for worker in job.workers}
        settings, cpus = job.config.autoscale.policy_settings(), job.config.worker.reserved
        return PlacedJob(job.name, scaled_stages(job.plan), windows, settings, cluster, cpus, job.config.checkpoint.saves_state)

    @property
    def _start_timeout(self) -> float:
        return seconds(self._job.config.worker.start_timeout)

    def _upwards(self, plan: NodePlan) -> Iterable[tuple[str, int]]:
        """Return the operators that get workers, from the sinks up."""
        return reversed([(operator, after) for operator, (_, after) in plan.parallelism.items()])

    def _begin(self, plan: NodePlan, steps: Iterable[tuple[str, int]], state: NodeScalingState = NodeScalingState.SCALING) -> NodeChange:
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
            state=state,
            reason=plan.reason,
            begun=job.now,
        )
        self.operations.append(change)
        return change

    def _end(self, operation: NodeChange, problem: str | None) -> None:
        if operation.state is NodeScalingState.WAITING:
            self._job.emit(AskForRoom(0))
        operation.end(NodeScalingState.DONE if problem is None else NodeScalingState.FAILED, self._job.now, problem)
        kept = frozenset({operation.removed} if problem is not None and operation.removed is not None else ())
        self._use(avoid=self._avoided - kept, prefer=frozenset())
        self._job.emit(Reserve())


def _leads(node: str | None, cluster: ClusterView) -> bool:
    """Return True if the coordinator is on this node, which Ray drains, and can leave it."""
    return node is not None and node == cluster.home and node in cluster.draining
