"""The key types of restored state, against which arriving rows are checked.

State is found by key, so rows with keys of a type that has no common key type with the restored keys would start new state next
to the restored state, without an error. Keys whose types widen, such as integers and decimals, find their state.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..errors import RecordError
from ..joins.sides import KEY
from ..keys.encoding import key_type
from ..operators.keyed import KeyedInstance


class RestoredTypes:
    """The types of the key columns of one operator; none while nothing was restored.

    `waits`: some key column has shown no type since the restore.
    """

    def __init__(self) -> None:
        self._types: list[pa.DataType] = []
        self.waits = False

    def learn(self, columns: Sequence[pa.Array]) -> None:
        """Take the types of restored key columns; a column of nulls has none."""
        types = [column.type for column in columns]
        known = self._types or types
        self._types = [kind if pa.types.is_null(before) else before for before, kind in zip(known, types, strict=True)]
        self.waits = True

    def check(self, operator: KeyedInstance, rows: pa.RecordBatch) -> None:
        """Raise RecordError, naming the operator, the column and both types, if keys of `rows` can't equal restored ones."""
        columns = operator.key_columns(rows)
        for name, before, column in zip(operator.keys, self._types, columns, strict=True):
            if key_type(before, column.type) is None:
                key = "the key" if name.startswith(KEY) else f"the key column `{name}`"
                raise RecordError(
                    operator.context.name,
                    f"{key} is {column.type}, and is {before} in the state that was restored, so no key would find its "
                    "state: cast it, or name the operator differently with .named(...), and say allow_lost_state=True",
                )
        self.waits = any(pa.types.is_null(column.type) for column in columns)
