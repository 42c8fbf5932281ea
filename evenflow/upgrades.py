"""Upgrades of a running job, from the side of its handle: the new program is planned as the job was, and sent to its coordinator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from .building.requests import checked_key, checked_list, checked_strategy
from .engine.errors import FlowError, RequestError, UpgradeRolledBackError
from .engine.plan.graph import Graph
from .engine.plan.physical import Plan
from .engine.plan.planner import plan
from .engine.plan.upgrade.operator_verdicts import identities
from .engine.plan.upgrade.verdicts import UpgradePlan
from .engine.time.duration import Duration, seconds
from .own_modules import by_value
from .reads import awaited
from .scheduler.protocol.reports import UpgradeReport, UpgradeState
from .scheduler.protocol.requests import AbortUpgrade, Request, Responder, ShowChanges, ShowHistory, ShowPlanning, UpgradeCode
from .scheduler.protocol.upgrade_options import OnFailure, UpgradeOptions
from .terminal.listing import Listing

A = TypeVar("A")

ON_FAILURE = ("rollback", "continue")


class Flow(Protocol):
    """A dataflow, as an upgrade needs it; `ef.Dataflow` is one."""

    name: str
    graph: Graph


class CodeChanges:
    """The part of a job's handle that exchanges the job's code."""

    name: str
    _runtime: Responder

    def plan_upgrade(self, flow: Flow, *, everything: bool = False) -> UpgradePlan:
        """Return what `upgrade(flow)` would do with each operator: nothing, exchange its code, or that it needs a restart.

        `print` shows it as a table. `everything` takes the code of all operators as changed, for changes that can't be seen in the program,
        such as a new version of a library. Raises FlowError for the flow of another job, JobNotRunningError.
        """
        return _compare(self._runtime, flow, everything=everything)

    def upgrade(
        self,
        flow: Flow,
        *,
        canary: float = 0.05,
        canary_keys: Sequence[Hashable] = (),
        watch: Duration = "2m",
        max_errors: int = 0,
        max_slowdown: float = 2.0,
        on_failure: OnFailure = "rollback",
        strategy: str | None = None,
        everything: bool = False,
        runtime_env: Mapping[str, Any] | None = None,
        timeout: Duration | None = None,
        seen: Callable[[UpgradeReport], None] = lambda report: None,
    ) -> UpgradeReport | None:
        """Exchange the code of the running job for that of `flow`, a new version of its program, and wait for the end.

        Workers with the new code get the share `canary` of each changed operator's load, or the keys `canary_keys`, and run side by
        side with the old ones for `watch`. The job returns to the old code if the new code raises, refuses more than `max_errors` records
        beyond what the old code refuses, needs more than `max_slowdown` times as long for a record, or gets no rows in twice the time.
        Otherwise the other keys move by `strategy` (None: the job's), and the old workers leave. `canary=0` leaves the comparison out.

        A failure of the job in the meantime, such as a lost worker, ends the upgrade: the job starts again from its newest checkpoint with
        the old code, or with the new code for `on_failure="continue"`. State that the old code can't read is written only once the new code
        has passed its watch; from then on a failure continues with the new code. No checkpoint completes before, so exactly-once output
        waits.

        `runtime_env` is Ray's, for the processes of the new workers, for example with other packages; all workers are replaced then.

        `seen` gets the report now and then. Returns None if nothing has changed. Raises UpgradeRolledBackError if the job returned to the
        old code, RequestError, with a table, if an operator needs a restart (see `plan_upgrade`), JobBusyError while the job changes
        something else, JobNotRunningError, JobTimeoutError after `timeout` (the upgrade goes on).
        """
        options = _checked_options(canary, canary_keys, watch, max_errors, max_slowdown, on_failure, strategy)
        number = begin(self._runtime, flow, options, everything=everything, environment=runtime_env)
        return None if number is None else _watched(self._runtime, self.name, number, timeout, seen)

    def abort_upgrade(self) -> None:
        """Take the new code of the upgrade under way back, and return at once. Raises RequestError if there is none, or it is too late."""
        self._runtime.ask(AbortUpgrade())

    def upgrades(self) -> list[UpgradeReport]:
        """Return the upgrades of the job, oldest first; `print` shows them as a table."""
        from .terminal.reports import upgrades_table

        return Listing[UpgradeReport](self._runtime.ask(ShowHistory(UpgradeReport)), upgrades_table)


def _compare(job: Responder, flow: Flow, *, everything: bool) -> UpgradePlan:
    """Return what an upgrade of the running job to `flow` would change."""
    return _sent(job, ShowChanges(_planned(job, flow), everything))


def begin(job: Responder, flow: Flow, options: UpgradeOptions, *, everything: bool, environment: Mapping[str, Any] | None) -> int | None:
    """Begin an upgrade; return its number, None if nothing has changed. Another environment changes all code."""
    return _sent(job, UpgradeCode(_planned(job, flow), options, everything or environment is not None, environment))


def _sent(job: Responder, request: Request[A]) -> A:
    """Send a request with a plan, once. Own modules go with it, unless something in them can't be pickled: then their names do."""
    with by_value():
        if _can_be_pickled(request):
            return job.ask(request)
    return job.ask(request)


def _can_be_pickled(request: Request[Any]) -> bool:
    from ray import cloudpickle

    try:
        cloudpickle.dumps(request)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 -- whatever the user's objects raise
        return False
    return True


def _watched(job: Responder, name: str, number: int, timeout: Duration | None, seen: Callable[[UpgradeReport], None]) -> UpgradeReport:
    """Wait for the end of an upgrade; `seen` gets each report meanwhile. Raises UpgradeRolledBackError, JobTimeoutError."""

    def ended() -> UpgradeReport | None:
        report = _report_of(job, number)
        seen(report)
        return report if report.over else None

    report = awaited(ended, timeout, f"upgrade {number} of job `{name}`")
    if report.state is not UpgradeState.DONE:
        raise UpgradeRolledBackError(f"upgrade {number} of job `{name}` was {_outcome(report)}: {report.problem}", report)
    return report


def _report_of(job: Responder, number: int) -> UpgradeReport:
    """Return the report of an upgrade. Raises RequestError if newer ones have displaced it."""
    found = next((report for report in job.ask(ShowHistory(UpgradeReport)) if report.number == number), None)
    if found is None:
        raise RequestError(f"there is no report of upgrade {number} any more: newer ones have displaced it, or its coordinator was lost")
    return found


def _checked_options(
    canary: float,
    canary_keys: Sequence[Hashable],
    watch: Duration,
    max_errors: int,
    max_slowdown: float,
    on_failure: OnFailure,
    strategy: str | None,
) -> UpgradeOptions:
    """Return the options of an upgrade. Raises RequestError for impossible ones."""
    keys = tuple(map(checked_key, checked_list(canary_keys, "canary_keys")))
    if isinstance(canary, bool) or not isinstance(canary, (int, float)) or not 0 <= canary < 1:
        raise RequestError(f"canary={canary!r}: expected a share from 0 (no canary) to below 1, such as 0.05")
    if isinstance(max_errors, bool) or not isinstance(max_errors, int) or max_errors < 0:
        raise RequestError(f"max_errors={max_errors!r}: expected a number of records, 0 or more")
    if isinstance(max_slowdown, bool) or not isinstance(max_slowdown, (int, float)) or max_slowdown < 1:
        raise RequestError(f"max_slowdown={max_slowdown!r}: expected a factor of at least 1, such as 2.0")
    if on_failure not in ON_FAILURE:
        raise RequestError(f"on_failure={on_failure!r}: expected one of {', '.join(map(repr, ON_FAILURE))}")
    return UpgradeOptions(
        float(canary), keys, seconds(watch, "watch"), max_errors, float(max_slowdown), on_failure, checked_strategy(strategy)
    )


def _planned(job: Responder, flow: Flow) -> Plan:
    """Plan a flow as the job was planned."""
    if not isinstance(getattr(flow, "graph", None), Graph):
        raise FlowError(f"upgrade({flow!r:.200}): expected a Dataflow, the new version of the job's")
    settings = job.ask(ShowPlanning())
    physical = plan(flow.graph, parallelism=settings.parallelism, combine=settings.combine, settings=settings.settings)
    return replace(physical, identities=identities(physical))


def _outcome(report: UpgradeReport) -> str:
    return "rolled back" if report.state is UpgradeState.ROLLED_BACK else "not completed"
