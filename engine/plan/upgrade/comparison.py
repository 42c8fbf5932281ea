"""Compares the plan of a running job with that of a new version of its program, operator by operator.

Invariant: an operator that isn't named a restart does the same with the same state, splits and rows as before, or what the new code and
settings say, in workers that run next to old ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..physical import Plan, Stage
from .exchanges import Exchanges
from .layout import misfits
from .operator_verdicts import UNCHANGED, Judged, identities, judged, taken_as_changed
from .verdicts import OperatorChange, UpgradePlan, Verdict


def compare(old: Plan, new: Plan, *, all_changed: bool = False) -> UpgradePlan:
    """Return what a live upgrade from `old` to `new` changes, and why it may need a restart.

    `all_changed`: replace all workers, for changes that no comparison finds, such as functions that are looked up by name.
    """
    found = {name: (stage, Judged(Verdict.RESTART, why)) for name, stage, why in reversed(misfits(old, new))}
    stages = {stage.name: stage for stage in old.stages}
    judged_now = dict(_operators(old, new, all_changed=all_changed))
    exchanges = None if found else Exchanges(old, new)
    verdicts: list[OperatorChange] = []
    one_way: dict[str, str] = {}
    changed: list[str] = []
    for stage in new.stages:
        results = [found.get(one.name, (stage.name, judged_now.get(one.name, UNCHANGED)))[1] for one in stage.chain]
        if exchanges is not None and stage.name in stages:
            results[0] = _with_columns(results[0], exchanges.changed(stage))
        verdicts += [_change(one.name, stage.name, result) for one, result in zip(stage.chain, results, strict=True)]
        if all_changed or any(result.verdict is not Verdict.UNCHANGED for result in results):
            changed.append(stage.name)
            lost = _lost_position(stage)
            if lost is not None and all(result.verdict is not Verdict.RESTART for result in results):
                verdicts[-len(results)] = OperatorChange(stage.chain[0].name, stage.name, Verdict.RESTART, lost)
            reasons = [result.one_way for result in results if result.one_way is not None]
            if reasons:
                one_way[stage.name] = "; ".join(reasons)
    known = {change.operator for change in verdicts}
    verdicts += [_change(name, stage, result) for name, (stage, result) in reversed(found.items()) if name not in known]
    return UpgradePlan(tuple(verdicts), tuple(changed), one_way)


def _operators(old: Plan, new: Plan, *, all_changed: bool) -> Iterator[tuple[str, Judged]]:
    """Yield the verdict about each operator that both plans have, by its own settings and code."""
    before, after = dict(old.identities) or identities(old), dict(new.identities) or identities(new)
    there = {chained.name: chained.operator for stage in old.stages for chained in stage.chain}
    for stage in new.stages:
        for chained in stage.chain:
            name = chained.name
            if name in there:
                result = judged(there[name], chained.operator, before[name], after[name])
                changed = all_changed and result.verdict is Verdict.UNCHANGED
                yield name, taken_as_changed(there[name], chained.operator) if changed else result


def _with_columns(result: Judged, columns: str | None) -> Judged:
    if columns is None or result.verdict is Verdict.RESTART:
        return result
    return Judged(Verdict.RESTART, f"its input has other columns, and rows of both versions would mix: {columns}")


def _lost_position(stage: Stage) -> str | None:
    """Return why another process can't continue from the positions of the stage's source, None if it can."""
    for chained in stage.chain:
        source = getattr(chained.operator, "source", None)
        lost = None if source is None else source.lost_with_process
        if lost is not None:
            return f"new workers can't continue its source: {lost}"
    return None


def _change(operator: str, stage: str, result: Judged) -> OperatorChange:
    return OperatorChange(operator, stage, result.verdict, result.why)
