"""The calls of a job's handle that steer it: they move keys, and change its workers and its policies while the stream runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, Never, TypeVar

from .building.requests import checked_key, checked_list, checked_strategy, checked_text
from .engine.errors import RequestError
from .engine.time.duration import Duration
from .reads import awaited
from .reconfiguring import reconfigured, wanted_settings
from .scheduler.configs.autoscale import AutoscaleConfig
from .scheduler.configs.balance import BalanceConfig
from .scheduler.configs.checkpoint import CheckpointConfig
from .scheduler.configs.restart import RestartConfig
from .scheduler.policies.base import ScalingPolicy
from .scheduler.policies.controller import DecisionRecord, Mode
from .scheduler.protocol.changed_settings import SettingChange
from .scheduler.protocol.reports import MigrationReport, NodeScalingReport, OperationReport, SavepointReport, ScalingReport
from .scheduler.protocol.requests import (
    Autoscale,
    Balance,
    MoveKeys,
    Rebalance,
    Responder,
    Scale,
    ScaleIn,
    ScaleOut,
    ShowHistory,
    SplitHotKey,
    UnsplitHotKey,
)
from .terminal.listing import Listing

T = TypeVar("T")
R = TypeVar("R", bound=OperationReport)
N = TypeVar("N", bound=OperationReport | SavepointReport)


class Steering:
    """The part of a job's handle that steers the job."""

    name: str
    _runtime: Responder

    def balancer(self, operator: str, policy: str) -> None:
        """Balance the operator automatically from now on, by `policy`: hotspot or lpt; `off` ends it.

        `JobConfig(balance=...)` sets when keys move, and `migration_strategy` how. `migrations()` lists the moves and their reasons.
        Raises RequestError for an unknown operator or balancer, JobNotRunningError if the job has ended.
        """
        self._runtime.ask(Balance(checked_text(operator, "operator"), checked_text(policy, "policy")))

    def rebalance(
        self, operator: str, *, policy: str = "hotspot", strategy: str | None = None, timeout: Duration | None = "60s"
    ) -> MigrationReport:
        """Even out the operator's load now: a balancer plans, a strategy moves the keys, and the call waits for the end of the migration.

        `strategy`: sudden, fluid, batched, pause, lazy or restart; None for the job's own. The report has the plan and its reason, the
        moved keys, the duration, and the latency meanwhile. `timeout=None` returns at once. Raises RequestError for an unknown operator,
        balancer or strategy, and its subclasses JobNotRunningError if the job has ended and JobBusyError if another change is in progress;
        also JobTimeoutError.
        """
        request = Rebalance(checked_text(operator, "operator"), checked_text(policy, "policy"), checked_strategy(strategy))
        return self._moved(self._runtime.ask(request), timeout)

    def migrate(
        self,
        operator: str,
        *,
        groups: Sequence[int] = (),
        keys: Sequence[Hashable] = (),
        to: int,
        strategy: str | None = None,
        timeout: Duration | None = "60s",
    ) -> MigrationReport:
        """Move key groups, or single keys (a tuple for a key of several columns), to the operator's worker `to`.

        Other arguments are as in `rebalance`.
        """
        moved = checked_list(groups, "groups"), tuple(map(checked_key, checked_list(keys, "keys")))
        request = MoveKeys(checked_text(operator, "operator"), *moved, to, checked_strategy(strategy))
        return self._moved(self._runtime.ask(request), timeout)

    def split(
        self, operator: str, key: Hashable, *, to: Sequence[int], dealt: Literal["left", "right"] = "left", timeout: Duration | None = "60s"
    ) -> MigrationReport:
        """Split a hot key of a join: its worker shares it with the workers `to`, as a move while the stream runs.

        The key's rows of the side `dealt` are distributed over these workers, those of the other side go to each of them. Deal the larger
        side. A key that is already split is shared with `to` instead. Inner joins can deal either side, left, semi, anti and as-of joins
        `left`, right joins `right`. The wait and `timeout` are as in `rebalance`. Raises RequestError for an operator that is no such join
        and for workers that it doesn't have, JobNotRunningError, JobBusyError and JobTimeoutError.
        """
        request = SplitHotKey(checked_text(operator, "operator"), checked_key(key), checked_list(to, "to"), dealt)
        return self._moved(self._runtime.ask(request), timeout)

    def unsplit(self, operator: str, key: Hashable, *, timeout: Duration | None = "60s") -> MigrationReport:
        """Return all of a split key to its first worker, as a move. Raises RequestError if the key is not split; otherwise as `split`."""
        return self._moved(self._runtime.ask(UnsplitHotKey(checked_text(operator, "operator"), checked_key(key))), timeout)

    def migrations(self) -> list[MigrationReport]:
        """Return the newest 100 migrations of the job, oldest first."""
        from .terminal.reports import migrations_table

        return Listing[MigrationReport](self._runtime.ask(ShowHistory(MigrationReport)), migrations_table)

    def scale(self, operator: str, parallelism: int, *, strategy: str | None = None, timeout: Duration | None = "2m") -> ScalingReport:
        """Change the operator's number of workers while the stream runs, and wait for the end of that; `timeout=None` returns at once.

        New workers get keys as the balancer plans; before workers leave, their keys move to the others. `strategy`: the way keys move, as
        in `rebalance`. Raises RequestError for an unknown operator, an impossible number or a scaling that failed, and its subclasses
        JobNotRunningError and JobBusyError (another change is in progress); also JobTimeoutError.
        """
        number = self._runtime.ask(Scale(operator, parallelism, strategy))
        found = self._ended_operation(ScalingReport, number, timeout, f"scaling {number} of `{operator}`")
        if found.problem is not None:
            raise RequestError(f"scaling `{operator}` of job `{self.name}` to {parallelism} workers has failed: {found.problem}")
        return found

    def scale_out(self, nodes: int = 1, *, policy: str = "stela", timeout: Duration | None = "5m") -> NodeScalingReport:
        """Add `nodes` nodes and fill their slots with new workers, for the operators whose output matters most (Stela).

        Nodes that are missing are asked of Ray's autoscaler and waited for, if workers reserve CPUs: for 12 seconds, and up to
        WorkerConfig(start_timeout=...) while it starts nodes. `policy="round_robin"`, a baseline for comparison with Stela, gives every
        operator one worker in turn. `timeout=None` returns at once. Raises RequestError if the job can't be scaled now or has no nodes,
        too few nodes came, or no operator is congested; JobTimeoutError.
        """
        return self._nodes_scaled(self._runtime.ask(ScaleOut(nodes, policy)), timeout)

    def scale_in(self, nodes: int = 1, *, policy: str = "stela", timeout: Duration | None = "5m") -> tuple[NodeScalingReport, ...]:
        """Give back `nodes` nodes, one after the other, the node that matters least for the output first (Stela).

        `policy="round_robin"`, a baseline for comparison with Stela, gives back the node with the first name. Every operator loses its
        workers on the node, but keeps at least one. A worker that must stay continues on another node from a checkpoint, which needs
        CheckpointConfig(dir=...). `timeout=None` returns when the first node's drain has begun. Raises RequestError with the reason if a
        node can't be given back, JobTimeoutError.
        """
        rounds = 1 if timeout is None else nodes
        return tuple(self._nodes_scaled(self._runtime.ask(ScaleIn(policy)), timeout) for _ in range(rounds))

    def node_scalings(self) -> list[NodeScalingReport]:
        """Return the newest 100 calls of `scale_out` and `scale_in`, oldest first, with the nodes that were added and given back."""
        from .terminal.reports import node_scalings_table

        return Listing[NodeScalingReport](self._runtime.ask(ShowHistory(NodeScalingReport)), node_scalings_table)

    def scalings(self) -> list[ScalingReport]:
        """Return the newest 100 scalings of the job, oldest first."""
        from .terminal.reports import scalings_table

        return Listing[ScalingReport](self._runtime.ask(ShowHistory(ScalingReport)), scalings_table)

    def autoscaler(self, policy: str | ScalingPolicy[Any], *, mode: Mode = "advise") -> None:
        """Let a scaling policy decide every operator's number of workers from now on; `off` ends it.

        `policy` is one such as `ef.Ds2(min_change=2)`, or a name (ds2, dhalion, threshold, ...): that of the policy in
        `JobConfig(autoscale=...)`, which then has the settings given there, or of another one, with its defaults.

        With `mode="advise"` its decisions are only recorded and shown, with `mode="act"` carried out. `JobConfig(autoscale=...)` sets
        how often it decides and within which bounds; an operator's own bounds (`stream.parallelism(2, between=(1, 4))`, `fixed=True`)
        have priority. Raises RequestError for an unknown policy or mode, or one that the settings don't allow, JobNotRunningError if
        the job has ended.
        """
        self._runtime.ask(Autoscale(policy if isinstance(policy, ScalingPolicy) else checked_text(policy, "policy"), mode))

    def reconfigure(
        self,
        *,
        checkpoint: CheckpointConfig | None = None,
        restart: RestartConfig | None = None,
        balance: BalanceConfig | None = None,
        autoscale: AutoscaleConfig | None = None,
        migration_strategy: str | None = None,
        linger: Duration | None = None,
        log_level: str | None = None,
        **fixed: Never,
    ) -> list[SettingChange]:
        """Change settings of the job while it runs, without a restart. Return the settings that have another value now.

        A given group replaces the job's, as in `ef.JobConfig`; what is not given stays. `print` shows the changes as a table. They
        hold for workers that start later, and if the coordinator is lost. The next start of the program has its own settings again.

        Of `checkpoint` its interval, timeout, pause and tolerable failures can change. A new interval counts from where the previous one
        began. `balance` holds for all operators, also for those that `balancer` was called for. `linger` is that of
        `ef.NetworkConfig`. All other settings need new workers or another start: raises RequestError, naming the setting, if one is given
        with a value that is neither the job's nor its default, and changes nothing; JobNotRunningError if the job has ended.
        """
        given = {
            "checkpoint": checkpoint, "restart": restart, "balance": balance, "autoscale": autoscale,
            "migration_strategy": migration_strategy, "linger": linger, "log_level": log_level, **fixed,
        }  # fmt: skip
        return reconfigured(self._runtime, wanted_settings(given))

    def decisions(self) -> list[DecisionRecord]:
        """Return the decisions of the scaling policies, oldest first: snapshot, decision, reason and outcome of each."""
        from .terminal.reports import decisions_table

        return Listing[DecisionRecord](self._runtime.ask(ShowHistory(DecisionRecord)), decisions_table)

    def _nodes_scaled(self, number: int, timeout: Duration | None) -> NodeScalingReport:
        found = self._ended_operation(NodeScalingReport, number, timeout, f"scaling {number} of the nodes")
        if found.problem is not None:
            raise RequestError(f"scaling the nodes of job `{self.name}` has failed: {found.problem}")
        return found

    def _moved(self, number: int, timeout: Duration | None) -> MigrationReport:
        return self._ended_operation(MigrationReport, number, timeout, f"migration {number}")

    def _ended_operation(self, kind: type[R], number: int, timeout: Duration | None, what: str) -> R:
        """Wait until an operation has ended, and return its report; without a timeout return its present report."""

        def ended() -> R | None:
            report = numbered(self._runtime.ask(ShowHistory(kind)), number)
            return report if timeout is None or report.over else None

        return self._awaited(ended, timeout, what)

    def _awaited(self, ask: Callable[[], T | None], timeout: Duration | None, what: str) -> T:
        return awaited(ask, timeout, f"{what} of job `{self.name}`")


def numbered(reports: Sequence[N], number: int) -> N:
    """Find the report of an operation. Raises RequestError if newer reports have displaced it."""
    found = next((report for report in reports if report.number == number), None)
    if found is None:
        raise RequestError(f"number {number} is no longer among the newest {len(reports)} that the job remembers")
    return found
