"""The translation of a query: FROM and its joins, WHERE, GROUP BY, then SELECT, each a step from one relation to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from ..engine.errors import FlowError
from ..engine.expressions.expression import Expression, col
from ..engine.expressions.functions.common_types import common_type
from ..engine.expressions.trees.problems import BindingError
from ..stream import Stream
from .columns import check_names, filtered, selected, sql_name
from .conditions import conjuncts, tables_of
from .event_time import event_time_column
from .extremes import extreme_join, joined_with_extreme
from .grouping import grouped, has_aggregates
from .joins import joined
from .membership import is_membership, members
from .ranks import first_rows, ranked_by
from .refusals import check_parts, refusal
from .relation import Relation
from .translation import Translation

_SELECT = frozenset({"expressions", "from_", "joins", "where", "group", "having", "distinct", "kind"})


class Query(Translation):
    """The translation of a query: relations from its parts."""

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
        check_parts(select, _SELECT)
        if select.args.get("from_") is None:
            raise refusal(select, "a query needs FROM")
        conditions = conjuncts(select.args.get("where"))
        where = [each for each in conditions if not is_membership(each)]
        joins = select.args.get("joins") or []
        relation, joins = self._begun(select.args["from_"].this, joins, where)
        for place, join in enumerate(joins):
            relation = joined(self, relation, join, where if _may_push(joins[place + 1 :]) else [])
        for condition in where:
            relation = self.filtered(relation, condition)
        for condition in filter(is_membership, conditions):
            relation = members(self, relation, condition)
        if select.args.get("group") or has_aggregates(select):
            return grouped(self, relation, select)
        relation = self._projected(relation, select)
        if select.args.get("distinct"):
            check_parts(select.args["distinct"], frozenset())
            relation = self.shown(relation)
            ttl = self.lives("SELECT DISTINCT")
            relation = relation.of_stream(relation.stream.deduplicate(*relation.names.values(), ttl=None if ttl is None else f"{ttl}us"))
        return relation

    def _begun(self, first: exp.Expr, joins: list[exp.Join], where: list[exp.Expr]) -> tuple[Relation, list[exp.Join]]:
        """Return the rows of the first table, or of its join with their extremes, and the remaining joins."""
        if not joins or joins[0].side or joins[0].kind not in ("", "INNER", "CROSS") or not _may_push(joins):
            relation = self.source(first, joined=bool(joins))
            return self._restricted(relation, {first.alias_or_name}, where, kept=_may_push(joins)), joins
        join, rest = joins[0], joins[1:]
        conditions = [*conjuncts(join.args.get("on")), *where]
        for rows, other in ((first, join.this), (join.this, first)):
            found = extreme_join(rows, other, conditions)
            if found is None:
                continue
            relation, done = joined_with_extreme(self, found)
            if done:
                where[:] = [each for each in conditions if not any(each is one for one in found.used)]
                aliases = {rows.alias_or_name, other.alias_or_name}
                return self._restricted(relation, aliases, where, kept=True), rest
            swapped = exp.Join(this=other.copy(), on=join.args.get("on"))
            return self._restricted(relation, {rows.alias_or_name}, where, kept=True), [swapped, *rest]
        return self._restricted(self.source(first, joined=True), {first.alias_or_name}, where, kept=True), joins

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
        if relation.ranked is not None and (found := first_rows(self, relation, condition)) is not None:
            return found
        return relation.of_stream(filtered(relation, self.expression(condition, relation)))

    def _projected(self, relation: Relation, select: exp.Select) -> Relation:
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


def _cast(relation: Relation, types: Mapping[str, pa.DataType]) -> Stream:
    unlike = {name: kind for name, kind in types.items() if relation.columns.type_of(name) != kind}
    return relation.stream.cast(unlike) if unlike else relation.stream


def _may_push(joins: list[exp.Join]) -> bool:
    """Return True if a condition on the first table may be checked before the joins: no join adds nulls to its side."""
    return all((join.side or "").upper() not in ("RIGHT", "FULL") for join in joins)
