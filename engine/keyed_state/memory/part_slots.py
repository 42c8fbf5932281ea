"""Mutable parts of an aggregate's state in numbered slots: arrays, or lists of values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....state.growing import longer
from ...aggregates.base import Accumulator, Parts
from ...aggregates.ragged import Ragged
from .distinct_slots import DistinctSlots
from .ragged_slots import Ints, RaggedSlots


def new_slots(accumulators: Iterable[Accumulator], rows: int, *, merged_into: bool = False) -> tuple[Parts, ...]:
    """Return the parts of empty rows. `merged_into`: rows change by `merge_into`, not by replacing their values."""
    return tuple(
        tuple(_slots(part, accumulator.distinct and merged_into) for part in accumulator.empty(rows)) for accumulator in accumulators
    )


def grown(accumulators: Iterable[Accumulator], parts: Iterable[Parts], more: int) -> tuple[Parts, ...]:
    """Return parts that are longer by `more` empty rows."""
    pairs = zip(parts, accumulators, strict=True)
    return tuple(tuple(_longer(old, new) for old, new in zip(olds, a.empty(more), strict=True)) for olds, a in pairs)


def _slots(empty: Any, distinct: bool) -> Any:
    if not isinstance(empty, Ragged):
        return empty
    return (DistinctSlots if distinct else RaggedSlots)(empty.values.type, len(empty))


def _longer(column: Any, more: Any) -> Any:
    if not isinstance(more, Ragged):
        return longer(column, more)
    column.grow(len(more))
    return column


def merge_into(accumulator: Accumulator, parts: Parts, slots: Ints, new: Parts) -> Parts:
    """Merge `new` into the rows of these distinct slots; return the parts that `finish` needs of these rows."""
    if accumulator.distinct:
        return (parts[0].add(slots, new[0]),)
    merged = accumulator.merge(tuple(column[slots] for column in parts), new)
    for column, value in zip(parts, merged, strict=True):
        column[slots] = value
    return merged


def clear(parts: Iterable[Parts], slots: Ints) -> None:
    """Give up the lists in these slots."""
    for column in (column for part in parts for column in part):
        if isinstance(column, (RaggedSlots, DistinctSlots)):
            column.clear(slots)
