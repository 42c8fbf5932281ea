"""The layout of two plans: the same operators in the same stages, the same edges, and the same key groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ..physical import Plan, Stage, StageOutput

Misfit = tuple[str, str, str]
"""An operator of the new plan, or one that is gone, its stage, and why workers of both versions can't run together."""


def misfits(old: Plan, new: Plan) -> list[Misfit]:
    """Return the differences of the layouts. The number of workers is not one."""
    found = [*_gone(old, new), *_moved(old, new)]
    before = {stage.name: stage for stage in old.stages}
    for stage in new.stages:
        if stage.name in before and not found:
            found += _edges(before[stage.name], stage)
    if old.key_groups != new.key_groups:
        for stage in new.stages:
            if stage.is_keyed:
                found.append((stage.name, stage.name, f"it had {old.key_groups} key groups and has {new.key_groups}"))
    return found


def _places(plan: Plan) -> dict[str, tuple[str, int]]:
    return {chained.name: (stage.name, place) for stage in plan.stages for place, chained in enumerate(stage.chain)}


def _gone(old: Plan, new: Plan) -> Iterator[Misfit]:
    before, after = _places(old), _places(new)
    for name, (stage, _) in after.items():
        if name not in before:
            yield name, stage, "it is new"
    for name, (stage, _) in before.items():
        if name not in after:
            yield name, stage, "it is gone"


def _moved(old: Plan, new: Plan) -> Iterator[Misfit]:
    """Yield the operators that are in another stage, or in another order within their stage."""
    before, after = _places(old), _places(new)
    for name, (own, _) in after.items():
        if name in before and before[name][0] != own:
            yield name, own, f"it ran in the workers of `{before[name][0]}`"
    stages = {stage.name: stage for stage in old.stages}
    for stage in new.stages:
        if stage.name not in stages:
            continue
        then = [one.name for one in stages[stage.name].chain if one.name in after]
        now = [one.name for one in stage.chain if one.name in before]
        if sorted(then) == sorted(now):
            for was, name in zip(then, now, strict=True):
                if was != name:
                    yield name, stage.name, f"it is in the place of `{was}`"


def _edges(old: Stage, new: Stage) -> Iterator[Misfit]:
    """Yield the operators of a stage with the same operators that get other inputs, or send to other ones."""
    for then, now in zip(old.chain, new.chain, strict=True):
        if then.inputs != now.inputs:
            yield now.name, new.name, f"it read {_read(old, then.inputs)} and reads {_read(new, now.inputs)}"
    before, after = list(old.outputs), list(new.outputs)
    if [output.target for output in before] != [output.target for output in after]:
        yield new.name, new.name, f"it sent to {_targets(before)} and sends to {_targets(after)}"
        return
    for was, output in zip(before, after, strict=True):
        if was.keys != output.keys:
            keys = f"its input was partitioned by {_keys(was)} and is by {_keys(output)}"
            yield output.target, output.target, keys
        elif was.source != output.source:
            yield output.target, output.target, f"it read {_read(old, (was.source,))} and reads {_read(new, (output.source,))}"
        elif was != output:
            names = [each.name for each in fields(output) if getattr(was, each.name) != getattr(output, each.name)]
            yield output.target, output.target, f"its input is sent in another way ({', '.join(names)})"


def _read(stage: Stage, inputs: tuple[tuple[int, str], ...]) -> str:
    return " and ".join(f"`{stage.chain[place].name}`{'' if port == 'out' else f'.{port}'}" for place, port in inputs) or "another stage"


def _targets(outputs: list[StageOutput]) -> str:
    return ", ".join(f"`{output.target}`" for output in outputs) or "no stage"


def _keys(output: StageOutput) -> str:
    return "no key" if output.keys is None else ", ".join(output.keys)
