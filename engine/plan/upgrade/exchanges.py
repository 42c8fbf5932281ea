"""The columns on the exchanges of two plans, where they are certain and their readers need them.

Workers of both versions send to the same readers while an upgrade goes on, so the rows of both must fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_

from ...columns import UNKNOWN, Columns
from ...keys.unkeyed import shown
from ...needed import Needed
from ...operators.aggregation.combine import Combine
from ..physical import Plan, Stage

Wanted = tuple[Needed | None, Needed | None]
"""The columns that a stage needs of its input in the old and the new plan; None stands for all."""


class Exchanges:
    """The exchanges of two plans that have the same stages and edges."""

    def __init__(self, old: Plan, new: Plan) -> None:
        self._old, self._new = old.inputs, new.inputs
        self._wanted = _needed_by_stage(old), _needed_by_stage(new)
        others = old.sources
        self._read_alike = all(name in others and others[name].needed == source.needed for name, source in new.sources.items())

    def changed(self, stage: Stage) -> str | None:
        """Describe the columns of a stage's input that differ for certain, None if all fit."""
        head = stage.chain[0].name
        before, after = self._old.get(head, ()), self._new.get(head, ())
        inputs = list(zip(before, after, strict=True)) if len(before) == len(after) else []
        wanted = self._wanted[0][stage.name], self._wanted[1][stage.name]
        found: dict[str, None] = {}
        for then, now in inputs or [(UNKNOWN, UNKNOWN)]:
            found |= dict.fromkeys(_certain(then, now, wanted))
            if not (then.complete and now.complete) and not self._read_alike:
                found |= dict.fromkeys(_unread(then, now, wanted))
        return ", ".join(found) or None


def _certain(then: Columns, now: Columns, wanted: Wanted) -> Iterator[str]:
    """Yield the known columns that differ."""
    for name in dict.fromkeys([*then.types, *now.types]):
        if not _is_wanted(name, wanted):
            continue
        if (name in then.types and now.lacks(name)) or (name in now.types and then.lacks(name)):
            yield f"`{name}` is {'new' if then.lacks(name) else 'gone'}"
        elif (old := then.type_of(name)) is not None and (new := now.type_of(name)) is not None and old != new:
            yield f"`{name}` was {old} and is {new}"


def _unread(then: Columns, now: Columns, wanted: Wanted) -> Iterator[str]:
    """Yield the columns that only one version needs, so that the sources of the other may not read them."""
    old, new = wanted
    if old is None or new is None:
        if old is not new:
            yield f"all columns are {'read now' if new is None else 'no longer read'}"
        return
    yield from (f"`{name}` is new" for name in sorted(new.names - old.names) if name not in then.types)
    yield from (f"`{name}` is gone" for name in sorted(old.names - new.names) if name not in now.types)


def _is_wanted(name: str, wanted: Wanted) -> bool:
    return any(needed is None or name in needed.names or name in needed.if_there for needed in wanted)


def _needed_by_stage(plan: Plan) -> Mapping[str, Needed | None]:
    """Return the columns that each stage needs of its input, from the sinks upwards."""
    found: dict[str, Needed | None] = {}
    for stage in reversed(plan.stages):
        found[stage.name] = _needed_of(stage, found)
    return found


def _needed_of(stage: Stage, below: Mapping[str, Needed | None]) -> Needed | None:
    wants: list[list[Needed | None]] = [[] for _ in stage.chain]
    for output in stage.outputs:
        position, port = output.source
        needed = below[output.target]
        read = port in stage.chain[position].operator.ports
        wants[position].append(needed.with_names(shown(output.keys or ())) if needed is not None and read else None)
    needed = None
    for position in reversed(range(len(stage.chain))):
        chained = stage.chain[position]
        known = [each for each in wants[position] if each is not None]
        wanted = reduce(or_, known) if known and len(known) == len(wants[position]) else None
        sides = [port for _, port in _readers(stage, position) if port not in chained.operator.ports]
        needed = None if sides else chained.operator.needs(wanted)
        if isinstance(chained.operator, Combine):
            needed = wanted  # that of the aggregate behind the exchange
        for above, _ in chained.inputs:
            wants[above].append(needed)
    return needed


def _readers(stage: Stage, position: int) -> list[tuple[int, str]]:
    """Return the reads of an operator's ports inside its stage and beyond."""
    return [
        each for each in [*(read for one in stage.chain for read in one.inputs), *(o.source for o in stage.outputs)] if each[0] == position
    ]
