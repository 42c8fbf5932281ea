"""Turns a new version of a job's program into the code that its workers get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.errors import FlowError, RequestError
from ...engine.identity.identity import Identity
from ...engine.plan.physical import Plan, Stage
from ...engine.plan.rescale import NewCode
from ...engine.plan.task_spec import ChainedOperator
from ...engine.plan.upgrade.comparison import compare
from ...engine.plan.upgrade.continued import continued
from ...engine.plan.upgrade.verdicts import UpgradePlan, Verdict
from ...engine.protocol.ids import CodeVersion


def planned(running: Plan, new: Plan, *, everything: bool) -> UpgradePlan:
    """Compare the plan of the running job with that of the new program. `everything`: take all code as changed.

    Raises FlowError for the program of another job.
    """
    if running.name != new.name:
        raise FlowError(f"job `{running.name}` can't become `{new.name}`: give the new flow the same name, Dataflow({running.name!r})")
    return compare(running, new, all_changed=everything)


def new_codes(
    running: Plan, new: Plan, changes: UpgradePlan, version: CodeVersion, environment: Mapping[str, Any] | None
) -> dict[str, NewCode]:
    """Return the code of each stage whose workers are to be replaced. `environment`: of their processes.

    Raises RequestError if an operator can't be replaced while the job runs.
    """
    if changes.needs_restart:
        raise RequestError(f"job `{running.name}`: {changes.summary()}\n{changes.table()}")
    verdicts = {change.operator: change.verdict for change in changes.operators}
    after = {stage.name: stage for stage in new.stages}
    return {
        stage.name: NewCode(version, tuple(_chain(stage, after[stage.name], verdicts)), environment, _identities(new, stage))
        for stage in running.stages
        if stage.name in changes.changed_stages
    }


def _identities(new: Plan, stage: Stage) -> dict[str, Identity]:
    return {chained.name: new.identities[chained.name] for chained in stage.chain if chained.name in new.identities}


def _chain(old: Stage, new: Stage, verdicts: dict[str, Verdict]) -> list[ChainedOperator]:
    """Return the new operators of a stage, in the state in which `start` left the old sources and sinks."""
    pairs = zip(old.chain, new.chain, strict=True)
    return [ChainedOperator(now.name, continued(then.operator, now.operator, verdicts[now.name]), now.inputs) for then, now in pairs]
