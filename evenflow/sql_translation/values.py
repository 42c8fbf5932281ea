"""Translates the expressions of a statement into `ef.col(...)` and its like.

>>> from .dialect import parsed
>>> from ..engine.expressions.expression import col
>>> (query,) = parsed("SELECT UPPER(name) FROM t")
>>> to_expression(query.expressions[0], lambda column: col(column.name))
name.str.upper()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from ..engine.errors import FlowError
from ..engine.expressions.expression import Expression, lit, when
from ..engine.expressions.trees.tree import PythonCall
from .dialect import microseconds, text_of
from .functions import CALLED, FUNCTIONS
from .refusals import check_parts, refusal
from .types import arrow_type
from .user_functions import UserFunction

Resolve: TypeAlias = Callable[[exp.Column], Expression]
"""A function that returns the expression of a column, or raises FlowError."""


def to_expression(
    node: exp.Expr,
    resolve: Resolve,
    known: Mapping[str, Expression] = MappingProxyType({}),
    functions: Mapping[str, UserFunction] = MappingProxyType({}),
) -> Expression:
    """Return the expression of a part of a statement.

    `known`: the expressions of parts that are computed already, by their SQL; `functions`: the user's, by name. Raises
    FlowError, naming the part, for what isn't supported.
    """
    return _Translation(resolve, known, functions).of(node)


class _Translation:
    def __init__(self, resolve: Resolve, known: Mapping[str, Expression], functions: Mapping[str, UserFunction]) -> None:
        self._resolve, self._known, self._functions = resolve, known, functions

    def of(self, node: exp.Expr) -> Expression:
        found = self._known.get(node.sql())
        if found is not None:
            return found
        entry = _NODES.get(type(node))
        if entry is not None:
            parts, method = entry
            check_parts(node, parts)
            return method(self, node)
        function = FUNCTIONS.get(type(node))
        if function is not None:
            check_parts(node, frozenset(function.parts) | function.ignored)
            made: Expression = function.make(*(self._argument(node.args.get(part)) for part in function.parts))
            return made
        if isinstance(node, exp.AggFunc):
            raise refusal(node, "an aggregate can't stand here: aggregates belong into SELECT and HAVING of a query with GROUP BY")
        if isinstance(node, exp.Window):
            raise refusal(node, "of functions OVER rows only ROW_NUMBER() with a bound on it in the query around it is supported")
        if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
            raise refusal(node, _QUERY)
        raise refusal(node, f"{node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()} isn't supported")

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._argument(each) for each in value]
        return self.of(value) if isinstance(value, exp.Expr) else value

    def column(self, node: exp.Column) -> Expression:
        return self._resolve(node)

    def literal(self, node: exp.Literal) -> Expression:
        if node.is_string:
            return lit(node.name)
        return lit(float(node.name)) if "e" in node.name.lower() else lit(Decimal(node.name)) if "." in node.name else lit(int(node.name))

    def boolean(self, node: exp.Boolean) -> Expression:
        return lit(bool(node.this))

    def null(self, node: exp.Null) -> Expression:
        return lit(None)

    def interval(self, node: exp.Interval) -> Expression:
        return lit(pa.scalar(microseconds(node), pa.duration("us")))

    def inner(self, node: exp.Expr) -> Expression:
        return self.of(node.this)

    def between(self, node: exp.Between) -> Expression:
        return self.of(node.this).between(self.of(node.args["low"]), self.of(node.args["high"]))

    def is_(self, node: exp.Is) -> Expression:
        value, what = self.of(node.this), node.expression
        if isinstance(what, exp.Null):
            return value.is_null()
        if isinstance(what, exp.Boolean):
            return (value if what.this else ~value).fill_null(False)
        raise refusal(node, "expected IS NULL, IS TRUE or IS FALSE")

    def in_(self, node: exp.In) -> Expression:
        if node.args.get("query") is not None:
            raise refusal(node, _QUERY)
        values = [self.of(each) for each in node.expressions]
        return reduce(lambda a, b: a | b, (self.of(node.this) == value for value in values))

    def case(self, node: exp.Case) -> Expression:
        subject = None if node.this is None else self.of(node.this)
        chosen: Any = None
        for pair in node.args["ifs"]:
            check_parts(pair, frozenset({"this", "true"}))
            test = self.of(pair.this) if subject is None else subject == self.of(pair.this)
            chosen = (when(test) if chosen is None else chosen.when(test)).then(self.of(pair.args["true"]))
        default = node.args.get("default")
        return chosen.otherwise(lit(None) if default is None else self.of(default))  # type: ignore[no-any-return]

    def if_(self, node: exp.If) -> Expression:
        other = node.args.get("false")
        return when(self.of(node.this)).then(self.of(node.args["true"])).otherwise(lit(None) if other is None else self.of(other))

    def cast(self, node: exp.Cast) -> Expression:
        return self.of(node.this).cast(arrow_type(node.args["to"]))

    def dot(self, node: exp.Dot) -> Expression:
        return self.of(node.this).struct.field(node.expression.name)

    def element(self, node: exp.Bracket) -> Expression:
        places = [int(each.name) for each in node.expressions if isinstance(each, exp.Literal) and not each.is_string]
        if len(places) != 1 or places[0] < 1:
            raise refusal(node, "expected the place of an element of a list, from 1 on, such as a[1]")
        return self.of(node.this).list.get(places[0] - 1)

    def called(self, node: exp.Anonymous) -> Expression:
        name = node.name.upper()
        if name in ("WSTART", "WEND"):
            raise refusal(node, "the bound of a window can only be selected, and grouped by")
        user, arguments = self._functions.get(name), [self.of(each) for each in node.expressions]
        if user is not None:
            return Expression(PythonCall(node.name, tuple(each.tree for each in arguments), user.function, user.kind))
        function = CALLED.get(name)
        if function is None:
            advice = f"give a Python function of your own in sql(..., functions={{'{node.name}': f}})"
            raise FlowError(f"SQL: {text_of(node):.300}: the function {node.name} is unknown; {advice}")
        try:
            return function(*arguments)
        except TypeError as error:
            raise FlowError(f"SQL: {text_of(node):.300}: {name} doesn't take {len(node.expressions)} arguments") from error


_QUERY = "a query can't stand here; write a JOIN, or IN and EXISTS as a part of WHERE"

_PARTS = frozenset({"this"})

_NODES: Mapping[type, tuple[frozenset[str], Callable[[_Translation, Any], Expression]]] = {
    exp.Column: (frozenset({"this", "table"}), _Translation.column),
    exp.Literal: (frozenset({"this", "is_string"}), _Translation.literal),
    exp.Var: (_PARTS, lambda _translation, node: lit(node.name)),
    exp.Boolean: (_PARTS, _Translation.boolean),
    exp.Null: (frozenset(), _Translation.null),
    exp.Interval: (frozenset({"this", "unit"}), _Translation.interval),
    exp.Paren: (_PARTS, _Translation.inner),
    exp.Alias: (frozenset({"this", "alias"}), _Translation.inner),
    exp.Between: (frozenset({"this", "low", "high"}), _Translation.between),
    exp.Is: (frozenset({"this", "expression"}), _Translation.is_),
    exp.In: (frozenset({"this", "expressions", "query"}), _Translation.in_),
    exp.Case: (frozenset({"this", "ifs", "default"}), _Translation.case),
    exp.If: (frozenset({"this", "true", "false"}), _Translation.if_),
    exp.Cast: (frozenset({"this", "to"}), _Translation.cast),
    exp.Bracket: (frozenset({"this", "expressions"}), _Translation.element),
    exp.Dot: (frozenset({"this", "expression"}), _Translation.dot),
    exp.Anonymous: (frozenset({"this", "expressions"}), _Translation.called),
}
