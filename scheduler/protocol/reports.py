"""Reports about the checkpoints, migrations and scalings of a job.

Invariant: `seconds` is None until the operation is over; after that `problem` is None exactly if it succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ...balancer.plan import BalancePlan
from ...engine.protocol.ids import WorkerId
from ...engine.shown import Shown
from ..policies.canary import StageComparison
from ..policies.nodes.placement import short


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReport(Shown):
    """`number` counts the reports of one kind. `reason`: why it was begun, with whatever policy or request wanted it.

    `began_at`: seconds since the epoch, None while it waits; `seconds`: how long it took, None until it is over. `problem`: why
    it failed, ended early, or takes so long.
    """

    number: int
    state: StrEnum
    reason: str
    began_at: float | None = None
    seconds: float | None = None
    problem: str | None = None

    @property
    def over(self) -> bool:
        """True if its state is final."""
        return self.seconds is not None

    @property
    def why(self) -> str:
        """The reason, and the problem if there is one."""
        return self.reason if self.problem is None else f"{self.reason}; {self.problem}"

    @property
    def _taken(self) -> str:
        return "" if self.seconds is None else f" in {self.seconds:.3f} s"


class CheckpointState(StrEnum):
    """The state of a checkpoint. COMMITTING: it is complete, and the sinks commit their part.

    UNREADABLE: it was complete, and was found damaged when the job was to be restored from it.
    """

    PENDING = "pending"
    SAVING = "saving"
    COMMITTING = "committing"
    COMPLETE = "complete"
    FAILED = "failed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointReport(OperationReport):
    """A checkpoint, as `job.checkpoints()` shows it; `seconds` from its begin to its manifest, once the sinks have committed.

    `waits_for`: the workers that a pending checkpoint has not passed. `state_bytes`: of all files of the state; `saved_bytes`: of
    the files written for it, the rest belong to earlier checkpoints; `keys` in these: all keys, or those that had changed.
    """

    state: CheckpointState
    state_bytes: int = 0
    keys: int = 0
    saved_bytes: int = 0
    waits_for: tuple[WorkerId, ...] = ()

    def __str__(self) -> str:
        what = [f"{self.keys:,} keys, {self.saved_bytes:,} bytes saved of {self.state_bytes:,}"] * (self.problem is None and self.over)
        what += [f"waits for {', '.join(self.waits_for)}"] * bool(self.waits_for)
        return f"checkpoint {self.number} {self.state.value}{self._taken}: {'; '.join([*what, self.why])}"


@dataclass(frozen=True, slots=True)
class SavepointReport:
    """`number` of its checkpoint. `problem`: why it could not be taken, once it is `done`."""

    number: int
    path: str
    done: bool = False
    problem: str | None = None


class MigrationState(StrEnum):
    """The state of a migration; the last two are final. `ended early`: the stream ended before all steps were made."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    ENDED_EARLY = "ended early"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport(OperationReport):
    """A migration, as `job.migrations()` shows it: groups and keys that got another worker, keys whose state moved, and its
    bytes.

    A key with state in several panes of a window counts once for each.

    `plan`: the balancer's plan, None for a migration by hand; `latency_ms`: p50 and p99 at the sinks while it was under way, None
    without a latency mark in that time. `problem`: why it ended early, None if the stream ended.
    """

    state: MigrationState
    operator: str
    strategy: str
    plan: BalancePlan | None
    groups: int
    routed_keys: int
    steps: int
    steps_done: int
    keys_moved: int
    state_bytes: int
    latency_ms: tuple[float, float] | None = None

    def __str__(self) -> str:
        moved = f"{self.steps_done} of {self.steps} steps, {self.keys_moved:,} keys, {self.state_bytes:,} bytes"
        return f"migration {self.number} of `{self.operator}` by {self.strategy} {self.state.value}{self._taken}: {moved}; {self.why}"


class ScalingState(StrEnum):
    """The state of a scaling; the last two are final."""

    EMPTYING = "moving keys away"
    CHANGING = "changing workers"
    SPREADING = "moving keys in"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingReport(OperationReport):
    """A scaling, as `job.scale()` returns it: workers before and after, and the moved keys. It is over when the last key has
    moved.
    """

    state: ScalingState
    operator: str
    before: int
    after: int
    keys_moved: int
    state_bytes: int

    def __str__(self) -> str:
        moved = f"{self.keys_moved:,} keys, {self.state_bytes:,} bytes"
        what = f"scaling {self.number} of `{self.operator}` from {self.before} to {self.after} workers"
        return f"{what} {self.state.value}{self._taken}: {moved}; {self.why}"


class UpgradeState(StrEnum):
    """The state of an upgrade; the last three are final."""

    SAVING = "taking a checkpoint"
    JOINING = "starting workers with the new code"
    WATCHING = "watching the new code"
    ROLLING = "moving all keys to the new code"
    RETURNING = "taking the new code back"
    DONE = "done"
    ROLLED_BACK = "rolled back"
    ENDED_EARLY = "ended early"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport(OperationReport):
    """An upgrade, as `job.upgrade()` returns it and `job.upgrades()` lists it.

    `version`: the number of the new code; `operators`: those whose workers get it. `canary`: the share of their load that got it first.
    `compared`: what both versions did side by side.
    """

    state: UpgradeState
    version: int
    operators: tuple[str, ...]
    canary: float
    keys_moved: int
    state_bytes: int
    compared: tuple[StageComparison, ...] = ()

    def __str__(self) -> str:
        moved = f"{self.keys_moved:,} keys, {self.state_bytes:,} bytes"
        what = f"upgrade {self.number} of {', '.join(f'`{name}`' for name in self.operators)} to version {self.version}"
        return f"{what} {self.state.value}{self._taken}: {moved}; {self.why}"


class NodeScalingState(StrEnum):
    """The state of a node scaling; the last two are final."""

    WAITING = "waiting for nodes"
    SCALING = "scaling operators"
    STARTING = "starting processes on other nodes"
    SAVING = "taking a checkpoint"
    REPLACING = "replacing workers"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeScalingReport(OperationReport):
    """A node scaling, as `job.scale_out()` and `job.scale_in()` return it: the nodes that joined or left, the operators' workers
    before and after, and the workers that other processes took over.
    """

    state: NodeScalingState
    added: tuple[str, ...]
    removed: str | None
    parallelism: Mapping[str, tuple[int, int]]
    replaced: tuple[WorkerId, ...]

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes of workers, for people."""
        changes = [f"{operator} {before} to {after} workers" for operator, (before, after) in self.parallelism.items()]
        return (*changes, *[f"{', '.join(self.replaced)} resumed on other nodes"] * bool(self.replaced))

    def __str__(self) -> str:
        added = f"node {', '.join(map(short, self.added))} added" if self.added else "no node added"
        what = added if self.removed is None else f"node {short(self.removed)} given back"
        return f"node scaling {self.number}, {what}, {self.state.value}{self._taken}: {'; '.join(self.changes)}; {self.why}"
