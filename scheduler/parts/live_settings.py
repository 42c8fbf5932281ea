"""Changes the settings of a running job: its parts continue with the new ones, and so do its workers and later coordinators.

Invariant: a request changes all its settings, or none. A worker has the job's settings once it is ready, whenever it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...engine.errors import JobNotRunningError
from ...engine.protocol.ids import WorkerId
from ...engine.time.duration import seconds
from ..configs.changes import SCALING_POLICY, changed, differences, is_foreign, to_plain
from ..configs.job import JobConfig
from ..policies.base import ScalingPolicy
from ..policies.controller import Mode
from ..policies.nodes.placement import ClusterView
from ..protocol.changed_settings import ChangedSettings, SettingChange
from ..protocol.effects import RememberSettings, Tell, Warn
from ..protocol.messages import ApplySettings
from ..record.job_record import JobRecord
from .attempts import Attempts
from .automatic_balancing import AutomaticBalancing
from .autoscaling import Autoscaling
from .checkpointing import Checkpointing


class LiveSettings:
    """The settings of one job, which `job.config` holds; its parts are told of those that they don't read there."""

    def __init__(
        self, job: JobRecord, attempts: Attempts, checkpointing: Checkpointing, balancing: AutomaticBalancing, autoscaling: Autoscaling
    ) -> None:
        self._job, self._attempts, self._checkpointing = job, attempts, checkpointing
        self._balancing, self._autoscaling = balancing, autoscaling

    def change(self, wanted: Mapping[str, Any], cluster: ClusterView | None) -> tuple[SettingChange, ...]:
        """Change these settings, by name; return those that have another value now.

        Raises RequestError for a setting that is unknown, wrong, or can't change while the job runs; JobNotRunningError if the
        job has ended.
        """
        job, before = self._job, self._job.config
        after = changed(before, wanted)
        if job.state.final:
            raise JobNotRunningError(f"job `{job.name}` is {job.state}: its settings no longer change")
        job.config = after
        if before.checkpoint != after.checkpoint:
            self._checkpointing.reschedule(before.checkpoint)
        self._attempts.restart_by(after.restart)
        if _any_of("balance.", wanted):
            self._balancing.begin_again(choose="balance.policy" in wanted)
        if _any_of("autoscale.", wanted):
            self._autoscaling.begin_again(cluster)
        if _for_workers(before) != _for_workers(after):
            joining = () if job.rescaling is None else job.rescaling.rescale.joining
            self._tell(job.ready.intersection((*job.workers, *joining)))
        self._remember()
        return differences(before, after)

    def autoscale(self, policy: str | ScalingPolicy[Any], mode: Mode, cluster: ClusterView | None) -> None:
        """Scale by this policy, or by the one of that name with the settings that the job knows for it. Raises as `change` does."""
        for config in (self._job.config, self._job.begun_with):
            known = config.autoscale.policy
            if isinstance(known, ScalingPolicy) and known.name == policy:
                policy = known
                break
        self.change({SCALING_POLICY: policy, "autoscale.mode": mode}, cluster)

    def balance(self, operator: str, policy: str) -> None:
        """Balance a single operator by this policy. Raises RequestError for an operator or a policy that can't be used."""
        self._balancing.choose(operator, policy)
        self._remember()

    def greet(self, worker: WorkerId) -> None:
        """Tell a worker that has started, by the settings of the job's start, those that have changed since."""
        if _for_workers(self._job.config) != _for_workers(self._job.begun_with):
            self._tell([worker])

    def _tell(self, workers: Iterable[WorkerId]) -> None:
        command = _for_workers(self._job.config)
        self._job.emit(*(Tell(worker, command) for worker in sorted(workers)))

    def _remember(self) -> None:
        job = self._job
        changes = differences(job.begun_with, job.config)
        remembered = ChangedSettings(to_plain(changes), self._balancing.chosen)
        if remembered != job.changed_settings:
            job.changed_settings = remembered
            job.emit(RememberSettings(remembered))
        for change in changes:
            if is_foreign(change.after):
                lost = "it is not one of evenflow's; if the coordinator is lost, the next one uses that of the job's start"
                job.emit(Warn(f"job `{job.name}` can't remember its scaling policy {change.after.name}: {lost}"))


def _for_workers(config: JobConfig) -> ApplySettings:
    return ApplySettings(seconds(config.network.linger), config.log_level)


def _any_of(group: str, wanted: Iterable[str]) -> bool:
    return any(name.startswith(group) for name in wanted)
