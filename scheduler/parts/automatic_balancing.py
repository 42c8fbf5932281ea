"""Automatic balancing of a job: which operators are balanced by which policy, and the moves that their policies decide.

Invariant: nothing is planned while keys move, workers join or leave, or the job does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...engine.errors import RequestError
from ...engine.protocol.ids import WorkerId, stage_of
from ..configs.balance import OFF
from ..load.window import WorkerWindow
from ..protocol.effects import JobState
from ..protocol.view import BalanceObservation
from ..record.job_record import JobRecord
from .balancing import Balancing, check_balancer
from .reconfiguration import Reconfiguration


class AutomaticBalancing:
    """Balances the operators of one job automatically. `busy()`: True while something is being changed."""

    def __init__(self, job: JobRecord, reconfiguration: Reconfiguration, busy: Callable[[], bool]) -> None:
        self._job, self._reconfiguration, self._busy = job, reconfiguration, busy
        self._balancings: dict[str, Balancing] = {}
        self.chosen: Mapping[str, str] = {}
        """The policies that were chosen for single operators, and hold in place of the job's."""
        self.begin_again(choose=True)
        keyed = {stage.name for stage in job.plan.stages if stage.is_keyed}
        for operator, policy in job.changed_settings.balancers.items():
            if operator in keyed:
                self.choose(operator, policy)

    def begin_again(self, *, choose: bool) -> None:
        """Continue with the job's present settings; if `choose`, all operators get their policy."""
        policy = self._job.config.balancer
        if choose:
            self.chosen = {}
            policies = {stage.name: policy for stage in self._job.plan.stages if stage.is_keyed and policy != OFF}
        else:
            policies = {name: balancing.policy for name, balancing in self._balancings.items()}
        self._balancings = {name: self._begun(policy, name) for name, policy in policies.items()}

    def choose(self, operator: str, policy: str) -> None:
        """Balance an operator by `policy` from now on; `off` ends that. Raises RequestError for an operator or policy that can't
        be used, and if the job measures nothing.
        """
        stage = self._job.keyed_stage(operator)
        if check_balancer(policy) != OFF and not self._job.config.metrics.enabled:
            raise RequestError(f"the balancer {policy} decides by what the workers measure, and MetricsConfig(enabled=False) says not to")
        if policy == OFF:
            self._balancings.pop(stage.name, None)
        else:
            self._balancings[stage.name] = self._begun(policy, stage.name)
        self.chosen = {**self.chosen, stage.name: policy}

    def observation(self, stage: str) -> tuple[str, BalanceObservation | None]:
        """Return the policy that balances a stage, or `off`, and its newest observation."""
        balancing = self._balancings.get(stage)
        return (OFF, None) if balancing is None else (balancing.policy, balancing.observation)

    def add(self, window: WorkerWindow) -> None:
        """Add a worker's window, unless it has all keys; the last window of a worker that has left is dropped."""
        stage = stage_of(window.worker)
        if stage not in self._balancings:
            return
        balancing = self._balancing(stage)
        if len(balancing.workers) > 1 and window.worker in balancing.workers:
            balancing.add(window, self._job.migrations.tables[stage])

    def advance(self) -> None:
        """Move keys where a policy decides so."""
        for name in self._balancings:
            self._balance(name)

    def _balance(self, name: str) -> None:
        job, balancing = self._job, self._balancing(name)
        moving = job.state is not JobState.RUNNING or self._busy()
        decided = balancing.decide(job.migrations.tables[name], moving=moving)
        if decided is not None:
            reason = f"{balancing.policy}, automatic: {decided.plan.reason}"
            self._reconfiguration.move(job.keyed_stage(name), None, decided.target, reason, decided.plan)

    def _balancing(self, name: str) -> Balancing:
        """Return the operator's balancing, started again if its workers have changed."""
        balancing, workers = self._balancings[name], self._workers(name)
        if workers != balancing.workers:
            balancing = self._balancings[name] = self._begun(balancing.policy, name)
        return balancing

    def _begun(self, policy: str, name: str) -> Balancing:
        return Balancing(policy, self._workers(name), self._job.config, self._job.plan.stage_of(name).dealable)

    def _workers(self, stage: str) -> tuple[WorkerId, ...]:
        return self._job.plan.stage_of(stage).workers
