"""`filter`: the rows for which a predicate is true, a Python function or an Arrow expression."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Batch
from ..errors import RecordError
from .base import Emit
from .refusals import OnError, Refused, Refusing
from .user_function import call_rows

Predicate: TypeAlias = Callable[[dict[str, Any]], Any] | pc.Expression
"""`function(row) -> bool`, or an Arrow expression such as `pc.field("delay") > 0`, which is vectorised."""


class Filter(Refusing):
    """Passes the rows for which the predicate is true; null counts as false, as in SQL."""

    def __init__(self, predicate: Predicate, on_error: OnError = "stop") -> None:
        self.predicate, self.on_error = predicate, on_error

    def process(self, batch: Batch, emit: Emit) -> None:
        if isinstance(self.predicate, pc.Expression):
            passed: list[Batch] = []
            self.refusals.halved(batch, partial(self._attempt, self.predicate, passed), emit)
        else:
            function = self.predicate if self.refusals.stops else _truth_of(self.predicate)
            kept, batch = call_rows(function, batch, self.refusals, emit)
            passed = [_passing(batch, np.fromiter(map(bool, kept), np.bool_, len(kept)))]
        for rows in passed:
            if rows.num_rows:
                emit(rows)

    def _attempt(self, expression: pc.Expression, passed: list[Batch], batch: Batch) -> None:
        try:
            mask = self._evaluate(expression, batch)
        except RecordError as error:
            raise Refused(0, error) from error
        passed.append(_passing(batch, mask))

    def _evaluate(self, expression: pc.Expression, batch: Batch) -> np.ndarray[Any, np.dtype[np.bool_]]:
        from pyarrow import acero  # loads pandas where there is one: only for flows that need it

        source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch.rows])))
        project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["keep"]), inputs=[source])
        try:
            column = project.to_table(use_threads=False).column(0)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
            raise RecordError(self.context.name, f"the expression {expression} fails: {error}") from error
        if not pa.types.is_boolean(column.type):
            raise RecordError(self.context.name, f"the expression {expression} gives {column.type}, expected true or false")
        keep: np.ndarray[Any, np.dtype[np.bool_]] = pc.fill_null(column, False).to_numpy()
        return keep

    def describe(self) -> str:
        return str(self.predicate) if isinstance(self.predicate, pc.Expression) else getattr(self.predicate, "__qualname__", "function")


def _passing(batch: Batch, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> Batch:
    return batch if mask.all() else batch.filter(mask)


def _truth_of(predicate: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], bool]:
    """The predicate as one that gives true or false: what can't be told to be either is refused as if it had raised."""

    def truth(row: dict[str, Any]) -> bool:
        return bool(predicate(row))

    truth.__qualname__ = getattr(predicate, "__qualname__", type(predicate).__name__)
    return truth
