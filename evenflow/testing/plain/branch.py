"""`branch`, row by row: teaches the oracle the operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...engine.functions.function_class import made
from ...engine.operators.rows.branch import OTHERWISE, Branch
from .oracle import Record, Records, evaluate, letter_of, table_of


@evaluate.register
def _(operator: Branch, inputs: Sequence[Records]) -> Records:
    stream, predicate = inputs[0], made(operator.predicate, "branch")
    kept, others, refused = list[Record](), list[Record](), list[Record]()
    if isinstance(predicate, pc.Expression):
        table = table_of(stream).append_column("__place", pa.array(np.arange(len(stream.items))))
        true = set(table.filter(predicate).column("__place").to_pylist())
        for place, record in enumerate(stream.items):
            (kept if place in true else others).append(record)
    else:
        for record in stream.items:
            try:
                (kept if predicate(dict(record.row)) else others).append(record)
            except Exception as error:  # noqa: BLE001 -- a user's function may raise anything
                refused.append(letter_of(operator, None, record.row, record.time, error))
    return Records(kept, stream.schema, refused, {OTHERWISE: Records(others, stream.schema)})
