"""A class of rows as columns: its objects are built a batch at a time from columns, and become columns again.

>>> from dataclasses import dataclass
>>> from evenflow.engine.typed_rows.annotations import row_type
>>> @dataclass(slots=True)
... class Bid:
...     item: str
...     price: float
>>> bids = row_type(Bid, "typed")
>>> bids.build(pa.record_batch({"item": ["a"], "price": [1.5]}))
[Bid(item='a', price=1.5)]
>>> bids.columns([Bid("b", 2.0)])
[['b'], [2.0]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa

from ..columns import Columns
from ..types.python_values import REFUSALS
from .field_types import FieldType, OpenType, Slot, UnfitError

Form = Literal["call", "keywords", "dict", "unvalidated"]
"""The way in which an object is made: a call with values in order, or by keyword; a dict; a Pydantic model without validation."""


@dataclass(frozen=True)
class RowField:
    """A field of the class, and the column of its name. `needed`: the class has no default for it."""

    name: str
    slot: Slot
    needed: bool = True


@dataclass(frozen=True)
class RowType(FieldType):
    """A class whose objects are rows, or values of a struct column.

    `changing`: the class has code of its own that runs when an object is made, so each object is compared with its columns.
    """

    cls: type
    fields: tuple[RowField, ...]
    form: Form
    changing: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]  # the class has it
        return self.cls.__qualname__.rpartition("<locals>.")[2]

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return [field.name for field in self.fields]

    @property
    def validates(self) -> bool:
        """True for a Pydantic model, which decides itself which values fit."""
        return self.form == "unvalidated"

    @property
    def fixed(self) -> pa.DataType | None:  # type: ignore[override]  # it follows from its fields
        kinds = [(field.name, field.slot.kind.fixed) for field in self.fields]
        return None if any(kind is None for _, kind in kinds) else pa.struct(kinds)

    @property
    def default(self) -> pa.DataType:
        return pa.struct([(field.name, field.slot.kind.default) for field in self.fields])

    def known_columns(self) -> Columns:
        """Return the columns of a stream of such rows."""
        return Columns({field.name: field.slot.kind.fixed for field in self.fields}, complete=True)

    def column_types(self) -> dict[str, pa.DataType | None]:
        """Return the type of each column made of such rows; None if the values decide, of decimals and datetimes."""
        kinds = ((field.name, field.slot.kind) for field in self.fields)
        return {name: None if isinstance(kind, OpenType) and kind.fixed is None else kind.default for name, kind in kinds}

    def accepts(self, kind: pa.DataType) -> bool:
        if not pa.types.is_struct(kind) or sorted(part.name for part in kind) != sorted(self.names):
            return False
        parts = [(field, kind.field(field.name).type) for field in self.fields]
        return all(field.slot.accepts(part) and not (pa.types.is_timestamp(part) and part.unit == "ns") for field, part in parts)

    def values(self, column: pa.Array) -> list[Any]:
        parts = dict(zip((part.name for part in column.type), column.flatten(), strict=True))
        return self._built([parts[name] for name in self.names])

    def build(self, rows: pa.RecordBatch) -> list[Any]:
        """Return the rows as objects of the class. The columns are those of the class, in any order.

        Raises UnfitError, naming the column, for a value that a field doesn't allow, and the errors of the class itself.
        """
        return self._built([rows.column(name) for name in self.names])

    def check(self, column: pa.Array) -> None:
        self.check_rows(pa.RecordBatch.from_struct_array(column))

    def converted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows that the class accepts in the order and the types of its fields. Raises Arrow's errors, naming the column."""
        columns = list[pa.Array]()
        for field in self.fields:
            try:
                columns.append(field.slot.converted(rows.column(field.name)))
            except REFUSALS as error:
                raise UnfitError(f"{self.name}.{field.name}: {error}") from error
        return pa.record_batch(columns, names=self.names)

    def check_rows(self, rows: pa.RecordBatch) -> None:
        """Raise UnfitError, naming the field, for a value that it doesn't allow, and the errors of the class itself."""
        if self.changing:
            self.build(rows)
            return
        for field in self.fields:
            try:
                field.slot.check(rows.column(field.name))
            except UnfitError as error:
                raise UnfitError(f"{self.name}.{field.name}: {error}") from error

    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        columns = self.columns(values)
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def columns(self, rows: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the values of each field, as those that Arrow knows. Raises UnfitError for anything but objects of the class."""
        self._check(rows)
        found = list[Sequence[Any]]()
        for field, values in zip(self.fields, _reader(tuple(self.names), self.form == "dict")(rows), strict=True):
            try:
                found.append(field.slot.plain(values))
            except UnfitError as error:
                raise UnfitError(f"{self.name}.{field.name}: {error}") from error
        return found

    def _check(self, rows: Sequence[Any]) -> None:
        wanted = dict if self.form == "dict" else self.cls
        if any(kind is not wanted for kind in set(map(type, rows))):
            wrong = next(row for row in rows if type(row) is not wanted)
            raise UnfitError(f"expected an object of {self.name}, got {wrong!r:.200} ({type(wrong).__name__})")
        if self.form == "dict":
            names = set(self.names)
            wrong = next((row for row in rows if row.keys() != names), None)
            if wrong is not None:
                raise UnfitError(f"{self.name} has the keys {self.names}, got {list(wrong)}")

    def _built(self, columns: list[pa.Array]) -> list[Any]:
        lists = list[list[Any]]()
        for field, column in zip(self.fields, columns, strict=True):
            try:
                lists.append(field.slot.values(column))
            except UnfitError as error:
                raise UnfitError(f"{self.name}.{field.name}: {error}") from error
        made = _builder(self.cls, tuple(self.names), self.form)(*lists)
        if self.changing:
            self._check_unchanged(made, lists)
        return made

    def _check_unchanged(self, made: list[Any], lists: list[list[Any]]) -> None:
        for field, given in zip(self.fields, lists, strict=True):
            for row, value in zip(made, given, strict=True):
                kept = getattr(row, field.name)
                if kept is not value and not kept == value and not (kept != kept and value != value):  # noqa: PLR0124, SIM201 -- NaN
                    advice = "keep the values that it is given, because each operator makes the object again from its columns"
                    raise UnfitError(f"{self.name}.{field.name}: the class changed {value!r:.200} to {kept!r:.200}: {advice}")


@lru_cache(maxsize=256)
def _builder(cls: type, names: tuple[str, ...], form: Form) -> Callable[..., list[Any]]:
    """Return a function from columns (lists) to objects. It is compiled once, as that for dicts in `batch.py`."""
    variables = [f"v{place}" for place in range(len(names))]
    arguments = ", ".join(f"c{place}" for place in range(len(names)))
    keywords = ", ".join(f"{name}={variable}" for name, variable in zip(names, variables, strict=True))
    display = ", ".join(f"{name!r}: {variable}" for name, variable in zip(names, variables, strict=True))
    made = {"call": f"cls({', '.join(variables)})", "dict": f"{{{display}}}"}.get(form, f"cls({keywords})")
    target = f"({variables[0]},)" if len(names) == 1 else ", ".join(variables)
    source = f"lambda {arguments}: [{made} for {target} in zip({arguments})]"
    maker = cls.model_construct if form == "unvalidated" else cls  # type: ignore[attr-defined]  # Pydantic's
    builder: Callable[..., list[Any]] = eval(source, {"cls": maker})  # noqa: S307 -- only names of fields go in
    return builder


@lru_cache(maxsize=256)
def _reader(names: tuple[str, ...], dicts: bool) -> Callable[[Sequence[Any]], list[list[Any]]]:
    """Return a function from objects to the values of each field; it is compiled once, like `_builder`."""
    lists = ", ".join(f"[row[{name!r}] for row in rows]" if dicts else f"[row.{name} for row in rows]" for name in names)
    reader: Callable[[Sequence[Any]], list[list[Any]]] = eval(f"lambda rows: [{lists}]")  # noqa: S307 -- only names of fields go in
    return reader
