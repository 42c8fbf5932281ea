"""`filter`: the rows for which a predicate is true, a Python function or an Arrow expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..batch import Batch
from ..errors import RecordError
from .base import Emit, Operator
from .user_function import call_rows

Predicate: TypeAlias = Callable[[dict[str, Any]], Any] | pc.Expression
"""`function(row) -> bool`, or an Arrow expression such as `pc.field("delay") > 0`, which is vectorised."""


class Filter(Operator):
    """Passes the rows for which the predicate is true; null counts as false, as in SQL."""

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate

    def process(self, batch: Batch, emit: Emit) -> None:
        mask = self._evaluate(self.predicate, batch) if isinstance(self.predicate, pc.Expression) else self._call(self.predicate, batch)
        if mask.all():
            emit(batch)
        elif mask.any():
            emit(batch.filter(mask))

    def _call(self, predicate: Callable[[dict[str, Any]], Any], batch: Batch) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.fromiter(map(bool, call_rows(self.context.name, predicate, batch)), np.bool_, batch.num_rows)

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
