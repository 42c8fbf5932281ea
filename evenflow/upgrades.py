"""Upgrades of a running job, from the side of its handle: the new program is planned as the job was, and sent to its coordinator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .building.requests import checked_key, checked_list, checked_strategy
from .engine.errors import FlowError, RequestError, UpgradeRolledBackError
from .engine.plan.physical import Plan
from .engine.plan.planner import plan
from .engine.plan.upgrade.operator_verdicts import identities
from .engine.plan.upgrade.verdicts import UpgradePlan
from .engine.time.duration import Duration, seconds
from .reads import awaited
from .scheduler.protocol.reports import UpgradeReport, UpgradeState
from .scheduler.protocol.requests import Responder, ShowChanges, ShowHistory, ShowPlanning, UpgradeCode
from .scheduler.protocol.upgrade_options import OnFailure, UpgradeOptions

if TYPE_CHECKING:
    from .dataflow import Dataflow

ON_FAILURE = ("rollback", "continue")


def compare(job: Responder, flow: Dataflow, *, everything: bool) -> UpgradePlan:
    """Return what an upgrade of the running job to `flow` would change."""
    return job.ask(ShowChanges(_planned(job, flow), everything))


def begin(
    job: Responder, flow: Dataflow, options: UpgradeOptions, *, everything: bool, environment: Mapping[str, Any] | None
) -> int | None:
    """Begin an upgrade; return its number, None if nothing has changed. Another environment changes all code."""
    return job.ask(UpgradeCode(_planned(job, flow), options, everything or environment is not None, environment))


def watched(job: Responder, name: str, number: int, timeout: Duration | None, seen: Callable[[UpgradeReport], None]) -> UpgradeReport:
    """Wait for the end of an upgrade; `seen` gets each report meanwhile. Raises UpgradeRolledBackError, JobTimeoutError."""

    def ended() -> UpgradeReport | None:
        report = report_of(job, number)
        seen(report)
        return report if report.over else None

    report = awaited(ended, timeout, f"upgrade {number} of job `{name}`")
    if report.state is not UpgradeState.DONE:
        raise UpgradeRolledBackError(f"upgrade {number} of job `{name}` was {_outcome(report)}: {report.problem}", report)
    return report


def report_of(job: Responder, number: int) -> UpgradeReport:
    """Return the report of an upgrade. Raises RequestError if newer ones have displaced it."""
    found = next((report for report in job.ask(ShowHistory(UpgradeReport)) if report.number == number), None)
    if found is None:
        raise RequestError(f"there is no report of upgrade {number} any more: newer ones have displaced it, or its coordinator was lost")
    return found


def checked_options(
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


def _planned(job: Responder, flow: Dataflow) -> Plan:
    """Plan a flow as the job was planned."""
    from .dataflow import Dataflow

    if not isinstance(flow, Dataflow):
        raise FlowError(f"upgrade({flow!r:.200}): expected a Dataflow, the new version of the job's")
    settings = job.ask(ShowPlanning())
    physical = plan(flow.graph, parallelism=settings.parallelism, combine=settings.combine, settings=settings.settings)
    return replace(physical, identities=identities(physical))


def _outcome(report: UpgradeReport) -> str:
    return "rolled back" if report.state is UpgradeState.ROLLED_BACK else "not completed"
