"""The properties of a stage that scaling policies need, apart from its workers' measurements.

>>> import evenflow as ef
>>> flow = ef.Dataflow("f")
>>> _ = flow.read(ef.generate(rate=900)).key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
>>> [(stage.name, stage.outputs, stage.rate) for stage in scaled_stages(flow.plan())]
[('generate', ('count',), 900), ('count', (), None)]
"""

from __future__ import annotations

from dataclasses import dataclass

from ....engine.operators.aggregation.aggregate_windows import AggregateWindows
from ....engine.operators.rows.read import Read
from ....engine.plan.physical import Plan, Stage
from ....engine.plan.resources import NO_RESOURCES
from ....engine.protocol.ids import FIRST_CODE, CodeVersion, WorkerId, worker_id


@dataclass(frozen=True, slots=True)
class ScaledStage:
    """A stage, as scaling policies see it.

    `outputs`: the stages that it sends to. `rate`: records per second that a source states as its offer. `kind`: as in
    `OperatorFigures`. `chained`: True if it has several operators. `key_groups`: None without keyed state. `fixed`: True if
    policies may not change its workers; `can_be_scaled`: True if a request may. `least`, `most`: its own bounds, None for those
    of the settings. `resources`: True if its workers need resources of their own, which not every node has. `codes`: as of `Stage`.
    """

    name: str
    parallelism: int
    outputs: tuple[str, ...] = ()
    is_source: bool = False
    rate: float | None = None
    kind: str = "continuous"
    chained: bool = False
    key_groups: int | None = None
    fixed: bool = False
    least: int | None = None
    most: int | None = None
    can_be_scaled: bool = True
    resources: bool = False
    codes: tuple[CodeVersion, ...] = ()

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        """Return the names of its workers, in the order of their indexes."""
        codes = self.codes or (FIRST_CODE,) * self.parallelism
        return tuple(worker_id(self.name, index, code) for index, code in enumerate(codes))


def scaled_stages(plan: Plan) -> tuple[ScaledStage, ...]:
    """Return the stages of a plan, in its order."""
    return tuple(scaled_stage(stage, plan.key_groups) for stage in plan.stages)


def scaled_stage(stage: Stage, key_groups: int) -> ScaledStage:
    """Return one stage of a plan with that many key groups."""
    head = stage.chain[0].operator
    return ScaledStage(
        name=stage.name,
        parallelism=stage.parallelism,
        outputs=tuple(dict.fromkeys(output.target for output in stage.outputs)),
        is_source=stage.is_source,
        rate=head.source.rate if isinstance(head, Read) else None,
        kind="window" if isinstance(head, AggregateWindows) else "continuous",
        chained=len(stage.chain) > 1,
        key_groups=key_groups if stage.is_keyed else None,
        fixed=stage.bounds.fixed or not stage.can_be_scaled,
        least=stage.bounds.least,
        most=stage.bounds.most,
        can_be_scaled=stage.can_be_scaled,
        resources=stage.resources != NO_RESOURCES,
        codes=stage.codes,
    )
