"""The columns of an aggregation's results: its keys, the columns of the window, and the aggregates."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ..aggregates.base import AggregateFunction
from ..columns import Columns
from ..errors import RecordError
from ..keys.unkeyed import shown


def result_columns(
    known: Columns,
    keys: tuple[str, ...],
    functions: Mapping[str, AggregateFunction],
    operator: str,
    window: Mapping[str, pa.DataType] | None = None,
) -> Columns:
    """Return all columns of the results; `known`: those of the input, `window`: those of the window."""
    types = {**known.only(shown(keys)).types, **(window or {})}
    results = {name: _result_type(function.beside(keys), known, operator) for name, function in functions.items()}
    fields = {name: function.beside(keys).fields(known) for name, function in functions.items()}
    return Columns({**types, **results}, complete=True, fields={name: found for name, found in fields.items() if found is not None})


def _result_type(function: AggregateFunction, known: Columns, operator: str) -> pa.DataType | None:
    """Return the type of an aggregate, None if it isn't certain."""
    certain = pa.schema([(name, kind) for name, kind in known.types.items() if kind is not None])
    if not known.complete or any(known.type_of(name) is None for name in function.reads(certain)):
        return None
    try:
        found = function.bind(certain, operator).output_type
    except RecordError:
        return None
    return None if found is None or pa.types.is_null(found) else found
