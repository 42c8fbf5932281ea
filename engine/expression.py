"""Evaluates Arrow expressions on batches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .batch import Batch
from .errors import RecordError

_FLOAT = '; Arrow compares whole numbers with a float such as 1e6 as floats of 32 bits: write 1_000_000, or pc.field("x").cast("double")'


def true_where(expression: pc.Expression, batch: Batch, operator: str, what: str = "the expression") -> npt.NDArray[np.bool_]:
    """Where the expression is true, shape (rows,); null counts as false, as in SQL.

    Raises RecordError if it can't be evaluated, or isn't of booleans; `what` begins the message.
    """
    from pyarrow import acero  # imports pandas if it is installed: only for flows that need it

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch.rows])))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["keep"]), inputs=[source])
    try:
        column = project.to_table(use_threads=False).column(0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
        hint = _FLOAT if "not in range" in str(error) else ""
        raise RecordError(operator, f"{what} {expression} fails: {error}{hint}") from error
    if not pa.types.is_boolean(column.type):
        raise RecordError(operator, f"{what} {expression} gives {column.type}, expected true or false")
    keep: npt.NDArray[np.bool_] = pc.fill_null(column, False).to_numpy()
    return keep
