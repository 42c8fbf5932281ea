"""Makes the operators that call a user's function with the state of a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..engine.errors import FlowError
from ..engine.functions.error_policy import OnError, check_on_error, function_name
from ..engine.functions.keyed_function import KeyedFunction
from ..engine.functions.rows_encoder import SchemaLike, arrow_schema
from ..engine.functions.state_migration import MigrateState, check_object_version, check_state_version
from ..engine.functions.state_types import check_states, checked_type
from ..engine.functions.user_function import check_function, check_open
from ..engine.operators.processing.process import Process
from ..engine.operators.processing.stateful_map import StatefulMap
from ..engine.operators.processing.stateful_map_columns import StatefulMapColumns
from ..engine.typed_rows.row_type import RowType
from .columns import listed_columns


def make_stateful_map(
    keys: tuple[str, ...],
    function: Any,
    state: Any,
    schema: SchemaLike,
    on_error: OnError,
    rows: RowType | None = None,
    *,
    version: int = 1,
    migrate: MigrateState | None = None,
) -> StatefulMap:
    """Make `stateful_map`. Raises FlowError for a wrong function, type or version of the state, schema or error policy."""
    fields, policy = arrow_schema(schema, "stateful_map"), check_on_error(on_error, "stateful_map")
    check_function(function, "stateful_map", "state", "row")
    check_object_version(version, migrate, f"stateful_map({function_name(function)})")
    return StatefulMap(keys, function, fields, policy, rows, checked_type(state, "stateful_map"), version, migrate)


def make_stateful_map_columns(
    keys: tuple[str, ...], function: Any, state: Mapping[str, Any], columns: Iterable[str] | None, on_error: OnError
) -> StatefulMapColumns:
    """Make `stateful_map_columns`. Raises FlowError for a wrong function or error policy, and for wrong columns."""
    wanted = None if columns is None else listed_columns(columns, "stateful_map_columns")
    dtypes, policy = _state_dtypes(state), check_on_error(on_error, "stateful_map_columns")
    return StatefulMapColumns(keys, check_function(function, "stateful_map_columns", "state", "rows"), dtypes, wanted, policy)


def make_process(keys: tuple[str, ...], function: Any, schema: SchemaLike, on_error: OnError, rows: RowType | None = None) -> Process:
    """Make `process`. Raises FlowError for anything but a `KeyedFunction`, and for a wrong schema or error policy."""
    if not isinstance(function, KeyedFunction):
        raise FlowError(f"process({function!r}): expected an instance of a class derived from ef.KeyedFunction")
    name = type(function).__name__
    check_function(function.on_row, f"{name}.on_row", "key", "row", "context", yields=True)
    check_function(function.on_timer, f"{name}.on_timer", "key", "time", "context", yields=True)
    check_open(type(function), name)
    check_states(type(function), "process")
    check_state_version(function, "process")
    return Process(keys, function, arrow_schema(schema, "process"), check_on_error(on_error, "process"), rows)


def _state_dtypes(state: Mapping[str, Any]) -> dict[str, np.dtype[Any]]:
    """Return the numpy types of state columns. Raises FlowError unless `state` maps names to numpy types of fixed size."""
    try:
        dtypes = {name: np.dtype(kind) for name, kind in state.items()}
    except (TypeError, AttributeError) as error:
        raise FlowError(f"state={state!r}: expected column names with numpy types, for example {{'n': 'int64'}}: {error}") from error
    if not dtypes or any(dtype.hasobject or dtype.itemsize == 0 for dtype in dtypes.values()):
        raise FlowError(f"state={state!r}: give at least one column, each of a numpy type of fixed size such as int64 or float64")
    return dtypes
