"""Checks, before a job starts, that its operators can restore the state of a checkpoint.

Operators are matched by name. An operator whose state is described otherwise than in the manifest is rejected, and the error
names the parts of the state then and now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....engine.errors import FlowError
from ....engine.operators.aggregation.aggregate_weights import AggregateWeights
from ....engine.plan.physical import Plan
from ....engine.state_description import StateDescription, compared
from ...protocol.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Allowed:
    """`lost_state`: state that the flow has no place for is discarded; `new_state`: parts that the checkpoint lacks start empty."""

    lost_state: bool = False
    new_state: bool = False


def check_fits(manifest: Manifest, plan: Plan, path: str, allowed: Allowed) -> None:
    """Raise FlowError, naming each operator and both sides, unless `plan` can restore `manifest`, which is stored at `path`."""
    lost = unmatched(manifest, plan)
    begin = f"job `{plan.name}` can't begin from {path}: "
    if lost and not allowed.lost_state:
        raise FlowError(
            f"{begin}it has state of {', '.join(f'`{name}`' for name in lost)}, and the flow has no such operator: "
            "name it with .named(...), or say allow_lost_state=True"
        )
    for name, then, now in _both(manifest, plan):
        found = compared(then, now)
        if found.version is not None:
            raise FlowError(f"{begin}operator `{name}`: {found.version}")
        if found.unfit:
            several = found.unfit[0].startswith(now.noun)
            out = f"give the {now.noun} another name" if several else "name the operator differently with .named(...)"
            raise FlowError(
                f"{begin}operator `{name}`: {'; '.join(found.unfit)}. Such state can't be converted: {out}, and say "
                f"allow_lost_state=True to discard what was saved{', and allow_new_state=True to start empty' if several else ''}"
            )
        problems = []
        if found.new and not allowed.new_state:
            problems.append(f"{', '.join(found.new)} is not in the saved state: say allow_new_state=True to start it empty")
        if found.lost and not allowed.lost_state:
            problems.append(f"{', '.join(found.lost)} is saved, and the flow has it no longer: say allow_lost_state=True to discard it")
        if problems:
            raise FlowError(f"{begin}operator `{name}`: {'; '.join(problems)}")
    for name, origin in _readers_without_state(manifest, plan):
        raise FlowError(
            f"{begin}operator `{name}` adds up the rows of `{origin}` by weight, and only `{origin}` has saved state: rows that are taken "
            f"back were never added. Name `{origin}` differently with .named(...), and say allow_lost_state=True, so that both start "
            f'empty; or say emit="final" in `{origin}`'
        )


def unmatched(manifest: Manifest, plan: Plan) -> list[str]:
    """Return the operators of the manifest that have state or a position, and no stage in the plan."""
    names = {stage.name for stage in plan.stages}
    return sorted(
        stage
        for stage, entries in manifest.tasks.items()
        if stage not in names and any(entry.files or entry.position is not None for entry in entries)
    )


def _readers_without_state(manifest: Manifest, plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the aggregates that read rows with weights of an aggregate, and that one, if it alone has state in the manifest."""
    saved = {name for name, entries in manifest.tasks.items() if any(entry.files for entry in entries)}
    for stage in plan.stages:
        head = stage.chain[0].operator
        if isinstance(head, AggregateWeights) and head.rows is not None:
            then = manifest.state.get(stage.name)
            if then is None or then.traits.get("rows") != head.rows:
                yield from ((stage.name, origin) for origin in head.origins if origin in saved)


def _both(manifest: Manifest, plan: Plan) -> list[tuple[str, StateDescription, StateDescription]]:
    """Return the operators that have state in the manifest, with its description then and now."""
    now: Mapping[str, StateDescription] = plan.state
    saved = [name for name, entries in manifest.tasks.items() if any(entry.files for entry in entries)]
    return [(name, manifest.state[name], now[name]) for name in saved if name in manifest.state and name in now]
