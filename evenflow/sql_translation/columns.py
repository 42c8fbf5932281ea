"""The columns of a relation's stream by the names that SQL gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from ..engine.expressions.expression import Expression
from ..engine.expressions.trees.tree import Column, columns_of
from ..engine.operators.rows.filter import Filter
from ..engine.plan.graph import Input
from ..stream import Stream
from .refusals import refusal
from .relation import Relation


def select_columns(relation: Relation, columns: Mapping[str, Expression]) -> Stream:
    """Return the stream with these columns only, in their order; a column that is kept stays the same column, also as a key."""
    kept: dict[str, str] = {}
    computed: dict[str, str] = {}
    made: dict[str, Expression] = {}
    for name, each in columns.items():
        if isinstance(each.tree, Column) and each.tree.name not in kept:
            kept[each.tree.name] = name
        else:
            computed[free_name(name, (*relation.columns.types, *made))] = name
            made[[*computed][-1]] = each
    stream = relation.stream.select(*kept, **made) if made else selected(relation.stream, [*kept])
    changed = {old: name for old, name in {**kept, **computed}.items() if old != name}
    stream = stream.rename(changed) if changed else stream
    return selected(stream, [*columns])


def selected(stream: Stream, columns: Sequence[str]) -> Stream:
    """Return the stream with these columns; itself if it has no others, in the same order."""
    known = stream.flow.graph.columns_of(Input(stream.node.id, stream.port))
    return stream if known.complete and [*known.types] == [*columns] else stream.select(*columns)


def filtered(relation: Relation, condition: Expression) -> Stream:
    """Return the rows of the stream that meet a condition. Rows that are updated need a reader that can take them back."""
    stream, updates = relation.stream.filter(condition), relation.updates
    if updates is not None and not columns_of(condition.tree) <= set(updates.key or ()):
        assert isinstance(stream.node.operator, Filter)
        stream.node.operator = replace(stream.node.operator, by_weight=True)
    return stream


def check_names(select: exp.Select) -> None:
    """Raise FlowError for two columns of one name."""
    names = [item.alias_or_name for item in select.expressions]
    twice = next((item for item, name in zip(select.expressions, names, strict=True) if names.count(name) > 1), None)
    if twice is not None:
        raise refusal(twice, f"two columns would have the name `{twice.alias_or_name}`: say AS another name for one of them")


def sql_name(node: exp.Column) -> str:
    """Return the name of a column as relations have it."""
    return f"{node.table}.{node.name}" if node.table else node.name


def free_name(name: str, taken: Any) -> str:
    """Return the name, with underscores in front as long as it is `taken`."""
    while name in taken:
        name = f"_{name}"
    return name
