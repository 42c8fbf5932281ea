"""A user's Python function in an expression: called once for each row, with Python's values; null is None.

>>> from ..trees.tree import Column, PythonCall
>>> bound = python_function(PythonCall("doubled", (Column("n"),), lambda n: n and n * 2, pa.int64()))(Operand(pa.int64()))
>>> bound.kernel(pa.array([4, None])).to_pylist()
[8, None]
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ...batch import Batch
from ...errors import shown
from ...types.python_values import REFUSALS
from ...types.value_column import ValueColumn
from ..trees.problems import EvaluationError
from ..trees.tree import PythonCall
from .operand import Binder, Bound, Operand


def python_function(tree: PythonCall) -> Binder:
    """Return the binder of a call of a user's function. Its result must fit the declared type as it is."""

    def kernel(*columns: Any) -> pa.Array:
        count = next((len(column) for column in columns if isinstance(column, pa.Array)), 1)
        arrays = [column if isinstance(column, pa.Array) else pa.repeat(column, count) for column in columns]
        rows = Batch(pa.RecordBatch.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])).to_rows()
        results = []
        for row in rows:
            try:
                results.append(tree.function(*row.values()))
            except Exception as error:
                raise EvaluationError(f"{tree.name} raised {shown(error)}") from error
        column = ValueColumn(tree.name, tree.kind)
        try:
            found = column.encoded(results)
        except REFUSALS as error:
            raise EvaluationError(f"the result of {tree.name} doesn't fit: {column.first_misfit(results).problem()}") from error
        if found.type != tree.kind:
            raise EvaluationError(f"{tree.name} returned {found.type}, and its type is {tree.kind}")
        return found

    def bind(*operands: Operand) -> Bound:
        return Bound(kernel, tuple((place, None) for place in range(len(operands))))

    return bind
