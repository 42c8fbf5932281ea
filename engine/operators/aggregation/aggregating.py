"""The base of operators that aggregate: the check of what their aggregates read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...aggregates.base import AggregateFunction
from ...columns import Columns
from ..keyed import KeyedOperator


class AggregatingOperator(KeyedOperator):
    """An operator with the aggregates `functions` by name."""

    functions: Mapping[str, AggregateFunction]

    checked_at_once = True

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        problems = ((name, function.problem(inputs[0])) for name, function in self.functions.items())
        return next((f"{name}: {problem}" for name, problem in problems if problem is not None), None)
