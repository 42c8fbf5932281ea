"""The plan of a job whose stages run another version of its code.

Invariant: nothing but the code and the workers' names changes: stages, indexes, channels and routing tables stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..protocol.ids import WorkerId, worker_id
from .physical import Plan, Stage
from .rescale import NewCode, coded


def recoded(plan: Plan, codes: Mapping[str, NewCode]) -> Plan:
    """Return the plan in which all workers of the stages in `codes` run that code."""
    names: dict[WorkerId, WorkerId] = {}
    for stage in plan.stages:
        if (code := codes.get(stage.name)) is not None:
            names |= {worker: worker_id(stage.name, index, code.version) for index, worker in enumerate(stage.workers)}
    described = describing(plan, codes)
    stages = tuple(
        stage if stage.name not in codes else replace(stage, codes=(codes[stage.name].version,) * stage.parallelism)
        for stage in described.stages
    )
    tasks = tuple(coded(task, codes[task.stage]) if task.name in names else task for task in plan.tasks)
    channels = tuple(replace(c, sender=names.get(c.sender, c.sender), receiver=names.get(c.receiver, c.receiver)) for c in plan.channels)
    return replace(described, stages=stages, tasks=tasks, channels=channels)


def describing(plan: Plan, codes: Mapping[str, NewCode]) -> Plan:
    """Return the plan whose stages are described by this code, whatever their workers still run."""
    stages = tuple(replace(s, chain=list(codes[s.name].chain)) if s.name in codes else s for s in plan.stages)
    identities = {name: identity for code in codes.values() for name, identity in code.identities.items()}
    return replace(plan, stages=stages, identities={**plan.identities, **identities})


def codes_of(plan: Plan) -> dict[str, NewCode]:
    """Return the code of each stage whose workers all run a later version than the first."""
    return {stage.name: _code(plan, stage) for stage in plan.stages if len(set(stage.codes)) == 1}


def _code(plan: Plan, stage: Stage) -> NewCode:
    environment = next(task.environment for task in plan.tasks if task.stage == stage.name)
    identities = {chained.name: plan.identities[chained.name] for chained in stage.chain if chained.name in plan.identities}
    return NewCode(stage.codes[0], tuple(stage.chain), environment, identities)
