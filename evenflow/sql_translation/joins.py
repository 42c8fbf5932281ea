"""JOIN: by equal columns, and by a bound of time, within equal windows, with a table, or without bounds for a time to live."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from ..engine.joins.within import Always, Between
from .columns import sql_name
from .conditions import conjuncts, tables_of
from .dialect import microseconds
from .refusals import check_parts, refusal
from .relation import Relation
from .translation import Translation

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


@dataclass(frozen=True, slots=True)
class _Times:
    """Bounds of right's event time less left's in microseconds; or `column`, which the other side's event time is at most.

    `swapped`: the column is right's, and bounds left's event time.
    """

    lower: int | None = None
    upper: int | None = None
    column: str | None = None
    swapped: bool = False


def joined(query: Translation, left: Relation, join: exp.Join, where: list[exp.Expr]) -> Relation:
    """Return the rows of a join; conditions of an inner join that stand in WHERE are taken off that list."""
    check_parts(join, frozenset({"this", "on", "side", "kind"}))
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    how = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}.get(side)
    if how is None or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise refusal(join, f"{side} {kind} JOIN isn't supported; there are INNER, LEFT, RIGHT and FULL JOIN")
    node = join.this
    alias = node.alias_or_name
    conditions = conjuncts(join.args.get("on"))
    if how == "inner":
        ours = {name.partition(".")[0] for name in left.names} | {alias}
        conditions += [each for each in where if tables_of(each) <= ours]
        where[:] = [each for each in where if tables_of(each) > ours or not tables_of(each) <= ours]
    if isinstance(node, exp.Table) and node.name in query.tables:
        return _looked_up(query, left, node, conditions, how, join)
    version = node.args.get("version") if isinstance(node, exp.Table) else None
    if version is not None:
        node.set("version", None)
    right = query.source(node, joined=True)
    for condition in [each for each in conditions if tables_of(each) <= {alias}]:
        if how not in ("inner", "left"):
            raise refusal(condition, f"a condition on one side of a {side} JOIN: filter that side in its own query")
        conditions.remove(condition)
        right = query.filtered(right, condition)
    pairs = [found for each in conditions if (found := equal_columns(each, left, right)) is not None]
    rest = [each for each in conditions if equal_columns(each, left, right) is None]
    of_streams = StreamJoin(query, join, alias, how)
    return of_streams.of(left, right, pairs, rest) if version is None else of_streams.as_of(version, left, right, pairs, rest)


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """A join of streams that `node` of a query says. `name`: the right side's; `how`: as for `stream.join`."""

    query: Translation
    node: exp.Expr
    name: str
    how: Any

    def of(self, left: Relation, right: Relation, pairs: list[tuple[str, str]], rest: list[exp.Expr]) -> Relation:
        """Return the joined rows. `pairs`: the columns that are equal; `rest`: the other conditions on both sides."""
        self._check(left, right, pairs)
        times = _time_bounds(rest, left, right)
        same = _same_windows(left, right, pairs)
        within, swapped = self._within(times, same=same)
        if rest and self.how != "inner":
            exact = same or (
                isinstance(within, Between) and times.column is None and all(_is_time_bound(each, left, right) for each in rest)
            )
            if not exact:
                what = "EXISTS" if self.how in ("semi", "anti") else "an outer join"
                raise refusal(self.node, f"{what} takes equal columns and bounds of the event times only; filter a side in its own query")
        keys = _without_bounds(left, right, pairs) if same else pairs
        one, two = left.stream.key_by(*(a for a, _ in keys)), right.stream.key_by(*(b for _, b in keys))
        flipped = {"left": "right", "right": "left"}.get(self.how, self.how)
        stream = two.join(one, within, how=flipped) if swapped else one.join(two, within, how=self.how)
        names = left.names if self.how in ("semi", "anti") else {**left.names, **right.names}
        both = replace(left, stream=stream, names=names, times={}, bounds=None)
        if same:
            both = replace(both, times=left.times, bounds=left.bounds)
        for condition in rest if self.how == "inner" else ():
            both = self.query.filtered(both, condition)
        return both

    def as_of(self, version: exp.Expr, left: Relation, right: Relation, pairs: list[tuple[str, str]], rest: list[exp.Expr]) -> Relation:
        """Return the rows of left with the newest row of right at their event time."""
        check_parts(version, frozenset({"this", "kind", "expression"}))
        if self.how not in ("inner", "left"):
            raise refusal(self.node, "FOR SYSTEM_TIME AS OF is of INNER or LEFT JOIN")
        self._check(left, right, pairs)
        at = version.expression
        if not isinstance(at, exp.Column) or left.times.get(left.names.get(sql_name(at), "")) != 0:
            raise refusal(version, "a stream is looked up at the event time of the other: FOR SYSTEM_TIME AS OF its column")
        if rest and self.how != "inner":
            raise refusal(rest[0], "LEFT JOIN ... FOR SYSTEM_TIME AS OF takes equal columns only")
        one, two = left.stream.key_by(*(a for a, _ in pairs)), right.stream.key_by(*(b for _, b in pairs))
        both = replace(left, stream=one.join_asof(two, how=self.how), names={**left.names, **right.names}, bounds=None)
        for condition in rest:
            both = self.query.filtered(both, condition)
        return both

    def _check(self, left: Relation, right: Relation, pairs: list[tuple[str, str]]) -> None:
        for relation in (left, right):
            if relation.updates is not None:
                why = "rows that are updated can't be joined: a changed row would have to take back its pairs; group by a window"
                raise refusal(self.node, why)
        if not pairs:
            raise refusal(self.node, "a join needs a condition that a column of one side equals a column of the other")

    def _within(self, times: _Times, *, same: bool) -> tuple[Any, bool]:
        """Return the times that match, and True if they are those of left for a row of right."""
        if same:
            return Between(0, 0), False
        lower = times.lower if not times.swapped else None if times.upper is None else -times.upper
        if times.column is not None and lower is not None:
            return Between(lower, times.column), times.swapped
        if times.lower is not None and times.upper is not None:
            if times.lower > times.upper:
                raise refusal(self.node, "no two times fulfil the conditions on the event times")
            return Between(times.lower, times.upper), False
        ttl = self.query.lives(f"the join with {self.name}, which has no bound of time,")
        return (Always() if ttl is None else Between(-ttl, ttl)), False


def _same_windows(left: Relation, right: Relation, pairs: list[tuple[str, str]]) -> bool:
    """Return True if the bounds of both sides' windows are equal by the pairs of columns."""
    one, two = left.bounds, right.bounds
    return one is not None and two is not None and {(one.start, two.start), (one.end, two.end)} <= set(pairs)


def _without_bounds(left: Relation, right: Relation, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs without the bounds of windows of one length, which are equal if the event times are; one at least."""
    one, two = left.bounds, right.bounds
    assert one is not None
    assert two is not None
    others = [pair for pair in pairs if pair not in ((one.start, two.start), (one.end, two.end))]
    return others if others and one.length == two.length else pairs


def equal_columns(condition: exp.Expr, left: Relation, right: Relation) -> tuple[str, str] | None:
    """Return the columns of left and right that a condition says are equal."""
    if not isinstance(condition, exp.EQ) or not all(isinstance(each, exp.Column) for each in (condition.this, condition.expression)):
        return None
    a, b = sql_name(condition.this), sql_name(condition.expression)
    for x, y in ((a, b), (b, a)):
        if x in left.names and y in right.names:
            return left.names[x], right.names[y]
    return None


def _is_time_bound(condition: exp.Expr, left: Relation, right: Relation) -> bool:
    found = _time_bounds([condition], left, right)
    return found.lower is not None or found.upper is not None


def _time_bounds(conditions: list[exp.Expr], left: Relation, right: Relation) -> _Times:
    """Return what conditions say about the event times of both sides, exactly."""
    found = _Times()
    for condition in conditions:
        sides = _sides(condition, left, right)
        if sides is None:
            continue
        kind, (ours, before), (theirs, after) = sides
        at_most = kind in (exp.LT, exp.LTE, exp.EQ)  # left's is at most right's
        if ours in left.times and theirs in right.times:
            apart = before - after + left.times[ours] - right.times[theirs] + (1 if kind is exp.LT else -1 if kind is exp.GT else 0)
            if at_most:
                found = replace(found, lower=apart if found.lower is None else max(found.lower, apart))
            if not at_most or kind is exp.EQ:
                found = replace(found, upper=apart if found.upper is None else min(found.upper, apart))
        elif theirs in right.times and not at_most and before == after == right.times[theirs] == 0:
            found = replace(found, column=ours, swapped=False)
        elif ours in left.times and at_most and before == after == left.times[ours] == 0:
            found = replace(found, column=theirs, swapped=True)
    return found


def _sides(condition: exp.Expr, left: Relation, right: Relation) -> tuple[type[exp.Expr], tuple[str, int], tuple[str, int]] | None:
    """Return a comparison of a column of left with one of right, and the microseconds added to each; None for any other condition."""
    kind = type(condition)
    one, two = (_shifted(condition.this), _shifted(condition.expression)) if kind in _FLIPPED else (None, None)
    if one is None or two is None:
        return None
    if one[0] in right.names and two[0] in left.names:
        one, two, kind = two, one, _FLIPPED[kind]
    if one[0] not in left.names or two[0] not in right.names:
        return None
    return kind, (left.names[one[0]], one[1]), (right.names[two[0]], two[1])


def _shifted(node: exp.Expr) -> tuple[str, int] | None:
    """Return a column and the microseconds that are added to it; None for anything else."""
    node = node.unnest()
    if isinstance(node, exp.TsOrDsToTimestamp | exp.TimeStrToTime):
        return _shifted(node.this)
    if isinstance(node, exp.Column):
        return sql_name(node), 0
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
        inner = _shifted(node.this)
        return inner and (inner[0], inner[1] + microseconds(node.expression) * (1 if isinstance(node, exp.Add) else -1))
    return None


def _is_arrival(node: exp.Expr, left: Relation) -> bool:
    if isinstance(node, exp.Column):
        return left.marks.get(sql_name(node)) == "now"
    return isinstance(node, exp.Anonymous) and node.name.upper() == "PROCTIME"


def _looked_up(query: Translation, left: Relation, node: exp.Table, conditions: list[exp.Expr], how: Any, join: exp.Join) -> Relation:
    """Return the rows with those of a table that doesn't change while a row is looked up."""
    check_parts(node, frozenset({"this", "alias", "version", "when"}))
    if how not in ("inner", "left"):
        raise refusal(join, "a table is joined by INNER or LEFT JOIN")
    alias, table = node.alias_or_name, query.tables[node.name]
    version = node.args.get("version")
    if version is not None:
        check_parts(version, frozenset({"this", "kind", "expression"}))
        if not _is_arrival(version.expression, left):
            raise refusal(version, "a table is looked up when a row arrives: FOR SYSTEM_TIME AS OF PROCTIME()")
    on: dict[str, tuple[Any, str]] = {}
    rest = []
    for condition in conditions:
        sides = [condition.this, condition.expression] if isinstance(condition, exp.EQ) else []
        theirs = [each for each in sides if isinstance(each, exp.Column) and each.table == alias]
        mine = [each for each in sides if alias not in tables_of(each)]
        if len(theirs) == 1 and len(mine) == 1:
            on[f"_look{len(on)}"] = (query.expression(mine[0], left), theirs[0].name)
        else:
            rest.append(condition)
    if not on:
        raise refusal(join, "a join with a table needs a condition that a column of the table equals something of the stream")
    if rest and how != "inner":
        raise refusal(rest[0], "LEFT JOIN with a table takes equal columns only")
    stream = left.stream.with_columns({name: each for name, (each, _) in on.items()})
    keys = {theirs for _, theirs in on.values()}
    added = [name for name in table.names if name not in keys]
    stream = stream.lookup(table.table, {name: theirs for name, (_, theirs) in on.items()}, how=how)
    stream = stream.rename({name: f"{alias}.{name}" for name in added} | {name: f"{alias}.{theirs}" for name, (_, theirs) in on.items()})
    names = {**left.names, **{f"{alias}.{name}": f"{alias}.{name}" for name in (*added, *keys)}}
    found = replace(left, stream=stream, names=names)
    for condition in rest:
        found = query.filtered(found, condition)
    return found
