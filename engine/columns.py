"""The known columns of a stream before the job runs: names, and types where they are certain.

Sources and operators tell them; `plan/columns.py` asks them in the order of the flow.

>>> left = Columns.of(pa.schema({"id": pa.int64(), "note": pa.null()}))
>>> left.type_of("id"), left.type_of("note"), left.lacks("name"), UNKNOWN.lacks("name")
(DataType(int64), None, True, False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from .types.views import plain_type


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that are known: their `types`, None for an unknown type; `complete`: there are no others.

    `fields`: for columns with lists of structs, the names of the structs' fields, also if their types aren't known.
    """

    types: Mapping[str, pa.DataType | None] = field(default_factory=dict)
    complete: bool = False
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(schema: pa.Schema, *, complete: bool = True) -> Columns:
        """Return the columns of a schema, as a stream has them. A column of nulls has no type yet: the first value decides."""
        return Columns({column.name: None if pa.types.is_null(column.type) else plain_type(column.type) for column in schema}, complete)

    def type_of(self, name: str) -> pa.DataType | None:
        """Return the column's type, None if it isn't known."""
        return self.types.get(name)

    def lacks(self, name: str) -> bool:
        """Return True if the stream certainly has no such column."""
        return self.complete and name not in self.types

    def having(self, more: Mapping[str, pa.DataType | None]) -> Columns:
        """Return these columns and `more`."""
        return Columns({**self.types, **more}, self.complete, {name: found for name, found in self.fields.items() if name not in more})

    def elements(self, name: str) -> tuple[str, ...] | None:
        """Return the columns that the elements of a list column make: a struct's fields, or the column itself; None if unknown."""
        kind = self.type_of(name)
        if name in self.fields or kind is None:
            return self.fields.get(name)
        if any(check(kind) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)):
            element = kind.value_type
            return tuple(part.name for part in element) if pa.types.is_struct(element) else (name,)
        return None

    def only(self, names: Iterable[str]) -> Columns:
        """Return the columns `names`, with the types that are known, of a stream that may have others."""
        return Columns({name: self.type_of(name) for name in names})

    def schema(self) -> pa.Schema | None:
        """Return the columns, Arrow's null type for an unknown type; None unless all columns are known."""
        if not self.complete:
            return None
        return pa.schema([(name, pa.null() if kind is None else kind) for name, kind in self.types.items()])

    def listed(self) -> str:
        """Return the names, for errors."""
        return ", ".join(self.types)


UNKNOWN = Columns()
"""A stream without known columns."""
