"""The translation of a query: FROM and its joins, WHERE, GROUP BY, then SELECT, each a step from one relation to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from ..engine.errors import FlowError
from ..engine.expressions.expression import Expression, col, lit
from ..engine.expressions.functions.common_types import common_type
from ..engine.expressions.trees.problems import BindingError
from ..engine.expressions.trees.tree import Column, columns_of
from ..engine.plan.graph import Input
from ..engine.time.duration import microseconds as duration
from ..stream import Stream
from .conditions import conjuncts, tables_of
from .event_time import event_time_column
from .refusals import check_parts, refusal
from .relation import Relation, Window
from .user_functions import UserFunction
from .values import to_expression

FOR_EVER = "never"
"""The time to live of state that is kept for ever."""

_SELECT = frozenset({"expressions", "from_", "joins", "where", "group", "having", "distinct", "kind"})


@dataclass
class Query:
    """The inputs of a statement. `streams` and `tables` by name; `ttl`: the life of unbounded state, None unless the user gave it.

    `notes`: state that grows for ever and results that are updated, for `explain()`.
    """

    streams: Mapping[str, Any]
    tables: Mapping[str, Any]
    ttl: Any = None
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def relation(self, tree: exp.Expr) -> Relation:
        """Return the rows of a query whose names are resolved."""
        if isinstance(tree, exp.Subquery):
            check_parts(tree, frozenset({"this", "alias"}))
            return self.relation(tree.this)
        if isinstance(tree, exp.Union):
            return self._union(tree)
        if not isinstance(tree, exp.Select):
            raise refusal(tree, "expected SELECT, or UNION ALL of such")
        return self._select(tree)

    def lives(self, what: str) -> int | None:
        """Return the time to live of unbounded state in microseconds, None for ever. Raises FlowError if the user gave none."""
        if self.ttl is None:
            raise FlowError(f'SQL: {what} keeps its rows for ever: bound it, or say sql(..., ttl="1d"), or ttl="never" to keep them')
        if self.ttl == FOR_EVER:
            self.notes.append(f"{what} keeps its rows for ever")
            return None
        return duration(self.ttl, "sql(ttl=...)")

    def _union(self, tree: exp.Union) -> Relation:
        check_parts(tree, frozenset({"this", "expression", "distinct"}))
        left, right = self.relation(tree.this), self.relation(tree.expression)
        if tree.args.get("distinct") is not False:
            raise refusal(tree, "UNION compares all rows; write UNION ALL, or SELECT DISTINCT around it")
        if len(left.names) != len(right.names):
            raise refusal(tree, f"one side has {len(left.names)} columns, the other {len(right.names)}")
        one, two = self.shown(left), self.shown(right)
        names = {theirs: ours for ours, theirs in zip(one.names.values(), two.names.values(), strict=True)}
        two = two.renamed(names)
        try:
            types = {f.name: common_type("UNION ALL", (f.type, two.schema().field(f.name).type)) for f in one.schema()}
        except BindingError as error:
            raise refusal(tree, str(error)) from error
        return Relation(_cast(one, types).union(_cast(two, types)), one.names)

    def shown(self, relation: Relation) -> Relation:
        """Return the relation with the columns that the query names, under these names and no others."""
        if relation.marks:
            name, mark = next(iter(relation.marks.items()))
            if mark == "now":
                raise FlowError(f"SQL: {name}: the time of arrival can only be that of a window, as DESCRIPTOR({name})")
            raise FlowError(f"SQL: {name}: the bounds of a window exist once its rows are grouped: GROUP BY window_start, window_end")
        if relation.ranked is not None:
            rank = relation.ranked.rank
            raise FlowError(f"SQL: {rank}: bound the rank in the query around it, for example WHERE {rank} <= 3")
        columns = list(relation.names.values())
        if len(set(columns)) == len(columns):
            new = dict(zip(columns, relation.names, strict=True))
            stream = selected(relation.stream, columns)
            changed = {old: name for old, name in new.items() if old != name}
            stream = stream.rename(changed) if changed else stream
        else:
            stream = relation.stream.select(**{name: col(column) for name, column in relation.names.items()})
            new = {}
        times = {new[column]: offset for column, offset in relation.times.items() if column in new}
        return Relation(stream, {name: name for name in relation.names}, times)

    def _select(self, select: exp.Select) -> Relation:
        from .grouping import grouped, has_aggregates
        from .joins import joined

        check_parts(select, _SELECT)
        if select.args.get("from_") is None:
            raise refusal(select, "a query needs FROM")
        where = conjuncts(select.args.get("where"))
        joins = select.args.get("joins") or []
        first = select.args["from_"].this
        relation = self._restricted(self.source(first, joined=bool(joins)), {first.alias_or_name}, where, kept=_may_push(joins))
        for join in joins:
            relation = joined(self, relation, join, where)
        for condition in where:
            relation = self.filtered(relation, condition)
        if select.args.get("group") or has_aggregates(select):
            return grouped(self, relation, select)
        relation = self._projected(relation, select)
        if select.args.get("distinct"):
            check_parts(select.args["distinct"], frozenset())
            relation = self.shown(relation)
            ttl = self.lives("SELECT DISTINCT")
            relation = relation.of_stream(relation.stream.deduplicate(*relation.names.values(), ttl=None if ttl is None else f"{ttl}us"))
        return relation

    def source(self, node: exp.Expr, *, joined: bool) -> Relation:
        """Return the rows of a table or a subquery in FROM; its columns are `alias.name` if it is joined."""
        alias = node.alias_or_name
        if node.args.get("alias") is not None:
            check_parts(node.args["alias"], frozenset({"this"}))
        if isinstance(node, exp.Subquery):
            relation = self.relation(node)
        elif isinstance(node, exp.Table):
            relation = self._table(node)
        else:
            raise refusal(node, "expected a table, or a query in parentheses")
        names = {f"{alias}.{name}": column for name, column in relation.names.items()}
        marks = {f"{alias}.{name}": mark for name, mark in relation.marks.items()}
        ranked = relation.ranked and replace(relation.ranked, rank=f"{alias}.{relation.ranked.rank}")
        relation = replace(relation, names=names, marks=marks, ranked=ranked)
        if not joined:
            return relation
        relation_marks = {name for name, mark in relation.marks.items() if mark != "now"}
        if relation_marks or relation.ranked:
            raise refusal(node, "rows can't be joined before their windows, or their rank, are known: group or bound them first")
        return relation.renamed({name: f"{alias}.{name}" for name in relation.columns.types})

    def _table(self, node: exp.Table) -> Relation:
        check_parts(node, frozenset({"this", "alias"}))
        name = node.name
        if name in self.tables:
            raise refusal(node, "a table of values can't be read as a stream; join it: JOIN t FOR SYSTEM_TIME AS OF PROCTIME()")
        if name not in self.streams:
            raise FlowError(f"SQL: there is no stream `{name}`; there are: {', '.join([*self.streams, *self.tables])}")
        stream = self.streams[name]
        alias, select = node.alias_or_name, node.parent_select
        used = {column.name for column in select.find_all(exp.Column) if column.table == alias} if select is not None else set()
        there = [each for each in stream.columns if each not in stream.arrivals]
        columns = [each for each in there if each in used] or there[:1]
        time = event_time_column(stream.stream)
        names, marks = {each: each for each in columns}, {each: "now" for each in stream.arrivals if each in used}
        return Relation(selected(stream.stream, columns), names, {} if time is None or time not in columns else {time: 0}, marks)

    def _restricted(self, relation: Relation, aliases: set[str], conditions: list[exp.Expr], *, kept: bool) -> Relation:
        """Filter by the conditions that are about these tables only, and take them off the list, if that is `kept` by the joins."""
        if kept:
            for condition in [each for each in conditions if tables_of(each) <= aliases]:
                conditions.remove(condition)
                relation = self.filtered(relation, condition)
        return relation

    def filtered(self, relation: Relation, condition: exp.Expr) -> Relation:
        """Return the rows for which a condition is true."""
        from .ranks import first_rows

        if relation.ranked is not None and (found := first_rows(self, relation, condition)) is not None:
            return found
        expression = self.expression(condition, relation)
        if relation.updates is not None and not columns_of(expression.tree) <= set(relation.updates.key or ()):
            raise refusal(condition, "rows that are updated can be filtered by their key only: a row that passed may have to be taken back")
        return relation.of_stream(relation.stream.filter(expression))

    def expression(self, node: exp.Expr, relation: Relation, known: Mapping[str, Expression] | None = None) -> Expression:
        """Return the expression of a part of the query over the columns of a relation."""

        def resolve(column: exp.Column) -> Expression:
            name = sql_name(column)
            if name in relation.names:
                return col(relation.names[name])
            if name in relation.marks:
                raise refusal(column, "the bound of a window, or the time of arrival, can only be selected and grouped by")
            if relation.ranked is not None and name == relation.ranked.rank:
                raise refusal(column, "a rank can only be bounded: WHERE rank <= n")
            if not relation.names:
                raise refusal(column, "it is neither in GROUP BY nor in an aggregate")
            raise refusal(column, f"there is no such column; there are: {', '.join(relation.names)}")

        return to_expression(node, resolve, known or {}, self.functions)

    def _projected(self, relation: Relation, select: exp.Select) -> Relation:
        from .ranks import ranked_by

        computed: dict[str, Expression] = {}
        names: dict[str, str] = {}
        marks: dict[str, str] = {}
        window, ranked = relation.window, None
        check_names(select)
        for item in select.expressions:
            name, node = item.alias_or_name, item.unalias()
            if isinstance(node, exp.Anonymous) and node.name.upper() in ("WSTART", "WEND"):
                marks[name], window = {"WSTART": "start", "WEND": "end"}[node.name.upper()], self.window(node, relation)
            elif isinstance(node, exp.Anonymous) and node.name.upper() == "PROCTIME":
                marks[name] = "now"
            elif isinstance(node, exp.Column) and sql_name(node) in relation.marks:
                marks[name] = relation.marks[sql_name(node)]
            elif isinstance(node, exp.Window):
                ranked = ranked_by(self, relation, node, computed, name)
            else:
                computed[name], names[name] = self.expression(node, relation), name
        return self.computed(replace(relation, marks=marks, window=window, ranked=ranked), computed, names)

    def window(self, node: exp.Anonymous, relation: Relation) -> Window:
        """Return the window that WSTART or WEND names. Raises FlowError unless it is over the event time of the rows."""
        kind, time, *lengths = node.expressions
        by = frozenset(part.name for part in lengths.pop().expressions) if isinstance(lengths[-1], exp.Tuple) else None
        micros = tuple(int(length.name) for length in lengths)
        name = sql_name(time) if isinstance(time, exp.Column) else ""
        if relation.marks.get(name) == "now" or (isinstance(time, exp.Anonymous) and time.name.upper() == "PROCTIME"):
            return Window(kind.name, None, micros, by)
        column = relation.names.get(name)
        if column is None or relation.times.get(column) != 0:
            known = [each for each, place in relation.names.items() if relation.times.get(place) == 0]
            advice = f", which is {known[0]}" if known else "; say event_time= where they are read"
            raise refusal(time, f"it is not the event time of these rows{advice}")
        return Window(kind.name, column, micros, by)

    def computed(self, relation: Relation, expressions: Mapping[str, Expression], names: Mapping[str, str]) -> Relation:
        """Return the relation with these columns, and hidden ones for times, keys and bounds that the names don't have."""
        kept = {each.tree.name: name for name, each in expressions.items() if isinstance(each.tree, Column)}
        key = () if relation.updates is None else relation.updates.key or ()
        bounds = () if relation.bounds is None else (relation.bounds.start, relation.bounds.end)
        columns = dict(expressions)
        for column in dict.fromkeys((*key, *relation.times, *bounds)):
            if column in relation.columns.types and column not in kept:
                hidden = _free(f"_{column}", columns)
                columns[hidden], kept[column] = col(column), hidden
        if not columns:
            columns["_none"] = lit(None)
        stream = select_columns(relation, columns)
        times = {kept[column]: offset for column, offset in relation.times.items() if column in kept}
        found = relation.bounds and replace(relation.bounds, start=kept[relation.bounds.start], end=kept[relation.bounds.end])
        window = relation.window and replace(relation.window, time=kept.get(relation.window.time or ""))
        return replace(relation, stream=stream, names=names, times=times, bounds=found, window=window)


def select_columns(relation: Relation, columns: Mapping[str, Expression]) -> Stream:
    """Return the stream with these columns only, in their order; a column that is kept stays the same column, also as a key."""
    kept: dict[str, str] = {}
    computed: dict[str, str] = {}
    made: dict[str, Expression] = {}
    for name, each in columns.items():
        if isinstance(each.tree, Column) and each.tree.name not in kept:
            kept[each.tree.name] = name
        else:
            computed[_free(name, (*relation.columns.types, *made))] = name
            made[[*computed][-1]] = each
    stream = relation.stream.select(*kept, **made) if made else selected(relation.stream, [*kept])
    changed = {old: name for old, name in {**kept, **computed}.items() if old != name}
    stream = stream.rename(changed) if changed else stream
    return selected(stream, [*columns])


def selected(stream: Stream, columns: Sequence[str]) -> Stream:
    """Return the stream with these columns; itself if it has no others, in the same order."""
    known = stream.flow.graph.columns_of(Input(stream.node.id, stream.port))
    return stream if known.complete and [*known.types] == [*columns] else stream.select(*columns)


def _cast(relation: Relation, types: Mapping[str, pa.DataType]) -> Stream:
    unlike = {name: kind for name, kind in types.items() if relation.columns.type_of(name) != kind}
    return relation.stream.cast(unlike) if unlike else relation.stream


def check_names(select: exp.Select) -> None:
    """Raise FlowError for two columns of one name."""
    names = [item.alias_or_name for item in select.expressions]
    twice = next((item for item, name in zip(select.expressions, names, strict=True) if names.count(name) > 1), None)
    if twice is not None:
        raise refusal(twice, f"two columns would have the name `{twice.alias_or_name}`: say AS another name for one of them")


def sql_name(node: exp.Column) -> str:
    """Return the name of a column as relations have it."""
    return f"{node.table}.{node.name}" if node.table else node.name


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name = f"_{name}"
    return name


def _may_push(joins: list[exp.Join]) -> bool:
    """Return True if a condition on the first table may be checked before the joins: no join adds nulls to its side."""
    return all((join.side or "").upper() not in ("RIGHT", "FULL") for join in joins)
