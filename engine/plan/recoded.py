"""The plan of a job whose stages run another version of its code.

Invariant: nothing but the code and the workers' names changes: stages, indexes, channels and routing tables stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..protocol.ids import WorkerId, worker_id
from .physical import Plan
from .rescale import NewCode, coded


def recoded(plan: Plan, codes: Mapping[str, NewCode]) -> Plan:
    """Return the plan in which all workers of the stages in `codes` run that code."""
    names: dict[WorkerId, WorkerId] = {}
    stages = []
    for stage in plan.stages:
        code = codes.get(stage.name)
        if code is not None:
            names |= {worker: worker_id(stage.name, index, code.version) for index, worker in enumerate(stage.workers)}
            stage = replace(stage, codes=(code.version,) * stage.parallelism, chain=list(code.chain))  # noqa: PLW2901
        stages.append(stage)
    tasks = tuple(coded(task, codes[task.stage]) if task.name in names else task for task in plan.tasks)
    channels = tuple(replace(c, sender=names.get(c.sender, c.sender), receiver=names.get(c.receiver, c.receiver)) for c in plan.channels)
    return replace(plan, stages=tuple(stages), tasks=tasks, channels=channels)


def codes_of(plan: Plan) -> dict[str, NewCode]:
    """Return the code of each stage whose workers all run a later version than the first."""
    environments = {task.stage: task.environment for task in plan.tasks}
    return {
        stage.name: NewCode(stage.codes[0], tuple(stage.chain), environments[stage.name])
        for stage in plan.stages
        if len(set(stage.codes)) == 1
    }
