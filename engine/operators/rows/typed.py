"""The operator `typed`: checks that the rows are those of a user's class, and gives the columns its order and types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...functions.error_policy import ErrorPolicy, OnError, Refused
from ...functions.rows_encoder import RowsEncoder
from ...functions.user_function import call_rows
from ...typed_rows.objects import problem_text
from ...typed_rows.row_type import RowType
from ...updates import Updates
from ..base import Operator
from ..function import FunctionInstance, FunctionOperator
from ..weighed import weighed_function


@dataclass(frozen=True, eq=False)
class Typed(FunctionOperator):
    """An operator that passes rows on as rows of a class. A Pydantic model validates each row; its values are those that are passed."""

    rows: RowType
    on_error: OnError = "stop"

    checked_at_once = True

    @property
    def results(self) -> RowType:  # type: ignore[override]  # it is what it was given
        return self.rows

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return inputs[0] if not self.rows.validates else super().changes(inputs)

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        """Describe the first column that the class, or the stream, lacks, or that has another type."""
        rows, known = self.rows, inputs[0]
        for field in rows.fields:
            if known.lacks(field.name) and (field.needed or not rows.validates):
                return f"the stream has no column `{field.name}` for {rows.name}.{field.name}: {field.slot.name}; it has {known.listed()}"
            kind = known.type_of(field.name)
            if kind is not None and not rows.validates and not field.slot.accepts(kind):
                wanted = str(field.slot.kind.default)
                advice = f"change the class, or convert the column before, for example with .cast({field.name}={wanted!r})"
                return f"column `{field.name}` is {kind}, and {rows.name}.{field.name} is {field.slot.name}: {advice}"
        more = next((name for name in known.types if name not in rows.names), None)
        if more is not None:
            return f"{rows.name} has no field `{more}` for this column of the stream: add one, or drop it before with .drop({more!r})"
        return None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        own = self.rows.known_columns()
        kept = {name: own.type_of(name) or (None if self.rows.validates else inputs[0].type_of(name)) for name in own.types}
        return Columns(kept, complete=True)

    def open(self, context: Context) -> TypedInstance:
        return TypedInstance(self, context)

    def weighed(self) -> Operator | None:
        return weighed_function(self, None)

    def describe(self) -> str:
        return self.rows.name


class TypedInstance(FunctionInstance):
    """An instance that checks columns once per schema, and values only where the types of the columns don't prove them."""

    def __init__(self, operator: Typed, context: Context) -> None:
        super().__init__(context)
        self._operator, self._rows = operator, operator.rows
        self._checked: pa.Schema | None = None
        self.errors = ErrorPolicy(context.name, operator.on_error)
        self._encoder = RowsEncoder(context.name, results=operator.rows, function=operator.rows.name)

    def process(self, batch: Batch, emit: Emit) -> None:
        if self._checked is None or not self._checked.equals(batch.rows.schema):
            problem = self._operator.problem([Columns.of(batch.rows.schema)])
            if problem is not None:
                raise RecordError(self.context.name, problem)
            self._checked = batch.rows.schema
        if self._rows.validates:
            self._validate(batch, emit)
            return
        try:
            rows = self._accepted(batch)
        except Exception:  # noqa: BLE001 -- a user's class may raise anything
            batch = self._without_refused(batch, emit)
            if not batch.num_rows:
                return
            rows = self._accepted(batch)
        emit(batch.with_rows(rows))

    def _accepted(self, batch: Batch) -> pa.RecordBatch:
        rows = self._rows.converted(batch.rows)
        self._rows.check_rows(rows)
        return rows

    def _without_refused(self, batch: Batch, emit: Emit) -> Batch:
        kept = []
        for place in range(batch.num_rows):
            try:
                self._accepted(batch.slice(place, 1))
            except Exception as error:  # noqa: BLE001 -- as above
                self.errors.take(Refused(place, RecordError(self.context.name, problem_text(error))), batch, emit)
            else:
                kept.append(place)
        return batch.take(np.array(kept, np.intp))

    def _validate(self, batch: Batch, emit: Emit) -> None:
        results, batch = call_rows(self._rows.cls.model_validate, batch, self.errors, emit)  # type: ignore[attr-defined]  # a Pydantic model
        for first, stop, rows in self.errors.encoded(self._encoder, results, np.arange(len(results) + 1), batch, emit):
            emit(batch.slice(first, stop - first).with_rows(rows))
