"""The operator `filter`: the rows for which a predicate is true, a Python function or an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...expressions.evaluation import Condition, condition_problem
from ...expressions.expression import Expression
from ...expressions.trees.tree import columns_of
from ...functions.error_policy import ErrorPolicy, OnError, Refused, function_name
from ...functions.user_function import call_rows
from ...needed import Needed
from ...typed_rows.row_type import RowType
from ...updates import Updates
from ..base import Operator
from ..function import FunctionInstance, FunctionOperator
from ..weighed import weighed_function

Predicate: TypeAlias = Callable[[dict[str, Any]], Any] | Expression
"""`function(row) -> bool`, or an expression such as `ef.col("delay") > 0`, which is vectorised."""

Mask: TypeAlias = npt.NDArray[np.bool_]
"""The value of the predicate for each row."""


@dataclass(frozen=True, eq=False)
class Filter(FunctionOperator):
    """An operator that passes rows for which the predicate is true.

    Null as the result of an expression counts as false, as in SQL. `rows`: the class of a function's argument, None for dicts.
    `by_weight`: it may only be read by weight, because a row that has passed may have to be taken back.
    """

    predicate: Predicate
    on_error: OnError = "stop"
    rows: RowType | None = None
    by_weight: bool = False

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0]

    checked_at_once = True

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        return condition_problem(self.predicate.tree, inputs[0]) if isinstance(self.predicate, Expression) else None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0]

    def open(self, context: Context) -> FilterInstance:
        return FilterInstance(self, context)

    def weighed(self) -> Operator | None:
        by_columns = isinstance(self.predicate, Expression) and self.on_error == "stop"
        return self if by_columns else weighed_function(self, self.predicate, self.ports)

    def needs(self, wanted: Needed | None) -> Needed | None:
        if wanted is None or not isinstance(self.predicate, Expression):
            return None
        return wanted.with_names(columns_of(self.predicate.tree))

    def describe(self) -> str:
        return repr(self.predicate) if isinstance(self.predicate, Expression) else function_name(self.predicate)


class FilterInstance(FunctionInstance):
    """An instance that evaluates an expression on a batch, or calls a function row by row."""

    def __init__(self, operator: Filter, context: Context) -> None:
        super().__init__(context)
        self.predicate = self.made(operator.predicate)
        self.rows = operator.rows
        self.condition = Condition(self.predicate.tree, context.name) if isinstance(self.predicate, Expression) else None
        self.errors = ErrorPolicy(context.name, operator.on_error)

    def process(self, batch: Batch, emit: Emit) -> None:
        if self.condition is not None:
            judged: list[tuple[Batch, Mask]] = []
            self.errors.halved(batch, partial(self._attempt, self.condition, judged), emit)
        else:
            function = self.predicate if self.errors.stops else _checked(self.predicate, self.context.name)
            kept, batch = call_rows(function, batch, self.errors, emit, self.rows)
            judged = [(batch, self._mask(kept, batch))]
        for rows, mask in judged:
            self.pass_on(rows, mask, emit)

    def pass_on(self, batch: Batch, mask: Mask, emit: Emit) -> None:
        """Emit the rows of `batch` according to the predicate's `mask`."""
        if mask.any():
            emit(batch if mask.all() else batch.filter(mask))

    def _mask(self, kept: list[Any], batch: Batch) -> Mask:
        """Return the predicate's results. Raises RecordError for the first row whose result is not true or false."""
        try:
            mask = pa.array(kept, pa.bool_())
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
            mask = None
        if mask is None or mask.null_count:
            place = next(place for place, value in enumerate(kept) if not isinstance(value, (bool, np.bool_)))
            problem = _no_truth(self.predicate, kept[place])
            raise RecordError(self.context.name, problem, record=batch.slice(place, 1).to_rows()[0])
        truth: Mask = mask.to_numpy(zero_copy_only=False)
        return truth

    def _attempt(self, condition: Condition, judged: list[tuple[Batch, Mask]], batch: Batch) -> None:
        try:
            mask = condition.true_rows(batch)
        except RecordError as error:
            raise Refused(0, error) from error
        judged.append((batch, mask))


def _checked(predicate: Callable[[Any], Any], operator: str) -> Callable[[Any], bool]:
    """Return the predicate, which then raises for a row whose result is not true or false, so that only this row is refused."""

    def checked(row: Any) -> bool:
        truth = predicate(row)
        if not isinstance(truth, (bool, np.bool_)):
            raise RecordError(operator, _no_truth(predicate, truth))
        return bool(truth)

    checked.__qualname__ = function_name(predicate)
    return checked


def _no_truth(predicate: Any, value: Any) -> str:
    got = "None, perhaps because of a missing `return`" if value is None else f"{value!r:.200} ({type(value).__name__})"
    return f"{function_name(predicate)} returned {got}: return True or False, for example with bool(...)"
