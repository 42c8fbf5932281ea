"""Evaluation of Arrow expressions on batches.

>>> sorted(columns_of((pc.field("price") > 5) & (pc.field("state") == "price of c")))
['price', 'state']
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .batch import Batch
from .errors import RecordError

_FLOAT = '; Arrow compares whole numbers with a float such as 1e6 as floats of 32 bits: write 1_000_000, or pc.field("x").cast("double")'


_ATTRIBUTE = re.compile(r"(?P<key>\w+): '(?P<value>.*)'")
"""A line of a schema's metadata as Arrow prints it."""


def columns_of(expression: pc.Expression) -> frozenset[str] | None:
    """Return the columns that it reads, perhaps with names of fields of nested ones; None if unknown, so that it may be any.

    Arrow has no function for it. An expression's serialized form is an Arrow file whose schema's metadata are its calls and
    fields in turn; Python's dict of the metadata would hold one of them alone, so they are read from the text of the schema.
    """
    try:
        _, (serialized,) = expression.__reduce__()
        shown = pa.ipc.open_file(serialized).schema.to_string(truncate_metadata=False, show_schema_metadata=True)
    except pa.ArrowException:  # it reads a column by index, or has a part that Arrow can't serialize
        return None
    attributes = [_ATTRIBUTE.fullmatch(line) for line in shown.rpartition("-- schema metadata --\n")[2].splitlines()]
    if not all(attributes):
        return None
    return frozenset(attribute["value"] for attribute in attributes if attribute and attribute["key"] == "field_ref")


def true_where(expression: pc.Expression, batch: Batch, operator: str, what: str = "the expression") -> npt.NDArray[np.bool_]:
    """Return a mask of the rows where the expression is true, shape (rows,); null counts as false, as in SQL.

    Raises RecordError if it can't be evaluated, or isn't boolean; `what` begins the message.
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
        raise RecordError(operator, f"{what} {expression} has the type {column.type}, expected booleans")
    keep: npt.NDArray[np.bool_] = pc.fill_null(column, False).to_numpy()
    return keep
