"""Types of fields of a row class: which columns they accept, and how values are read from a column and become one again.

Invariant: a value arrives equal to what it was, or there is an error. No value is examined if the column's type proves that it fits.

>>> numbers = Slot(LeafType("int", pa.int64(), pa.types.is_integer), optional=False)
>>> numbers.values(pa.array([1, 2], pa.int8()))
[1, 2]
>>> numbers.values(pa.array([1, None]))
Traceback (most recent call last):
    ...
evenflow.engine.typed_rows.field_types.UnfitError: null, but int allows none: say `int | None`
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import is_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..batch import column_values
from ..types.casting import unchanged
from ..types.widening import is_list, value_type


class UnfitError(ValueError):
    """The error for a value that a field doesn't allow."""


class FieldType(ABC):
    """A type of values that are not None. `name`: the type as the user wrote it.

    `fixed`: the type of its columns; None if a column keeps its own type among those that are accepted.
    """

    name: str
    fixed: pa.DataType | None

    @property
    @abstractmethod
    def default(self) -> pa.DataType:
        """The type of its columns inside of structs, lists and maps."""

    @abstractmethod
    def accepts(self, kind: pa.DataType) -> bool:
        """Return True if a column of the type `kind` may hold such values."""

    @abstractmethod
    def values(self, column: pa.Array) -> list[Any]:
        """Return the values of a column without nulls. Raises UnfitError for a value that the type doesn't allow."""

    def check(self, column: pa.Array) -> None:
        """Raise UnfitError for a value of a column without nulls that the type doesn't allow."""
        self.values(column)

    @abstractmethod
    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values as those that Arrow knows. Raises UnfitError for a value of another type."""


@dataclass(frozen=True)
class Slot:
    """A place for values: a field, or the elements of a list. `optional`: None is allowed."""

    kind: FieldType
    optional: bool

    @property
    def name(self) -> str:
        """The type as the user wrote it."""
        return f"{self.kind.name} | None" if self.optional else self.kind.name

    def accepts(self, kind: pa.DataType) -> bool:
        """Return True if a column of the type `kind` may hold the values; a column of nulls has no type yet."""
        kind = value_type(kind)
        return pa.types.is_null(kind) or self.kind.accepts(kind)

    def converted(self, column: pa.Array) -> pa.Array:
        """Return an accepted column in the type that the class gives it. Raises Arrow's errors for a value that would change."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        fixed = self.kind.fixed
        if fixed is None and pa.types.is_timestamp(column.type):
            fixed = pa.timestamp("us", column.type.tz)
        if fixed is None or column.type == fixed:
            return column
        if pa.types.is_null(column.type):
            return pa.nulls(len(column), fixed)
        return column.cast(fixed) if fixed == pa.uuid() else unchanged(column, fixed)

    def values(self, column: pa.Array) -> list[Any]:
        """Return the values of a column. Raises UnfitError for a value that isn't allowed, and Arrow's errors."""
        if column.null_count == 0 and not pa.types.is_null(column.type):
            return self.kind.values(column)
        if not len(column):
            return []
        if not self.optional:
            raise UnfitError(f"null, but {self.kind.name} allows none: say `{self.kind.name} | None`")
        if column.null_count == len(column):  # Arrow's drop_null can't make an empty column of a class with a UUID
            return [None] * len(column)
        given = iter(self.kind.values(column.drop_null()))
        return [next(given) if there else None for there in column.is_valid().to_pylist()]

    def check(self, column: pa.Array) -> None:
        """Raise UnfitError for a value of the column that isn't allowed."""
        if column.null_count or pa.types.is_null(column.type):
            self.values(column)
        else:
            self.kind.check(column)

    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return values, or None, as those that Arrow knows. Raises UnfitError for a value that isn't allowed."""
        if not any(map(is_, values, repeat(None))):
            return self.kind.plain(values)
        if not self.optional:
            raise UnfitError(f"None, but {self.kind.name} allows none: say `{self.kind.name} | None`")
        given = iter(self.kind.plain([value for value in values if value is not None]))
        return [None if value is None else next(given) for value in values]


@dataclass(frozen=True)
class LeafType(FieldType):
    """A type whose values Arrow returns as they are. `family`: True for the types of columns that hold such values."""

    name: str
    fixed: pa.DataType | None
    family: Callable[[pa.DataType], bool]

    @property
    def default(self) -> pa.DataType:
        assert self.fixed is not None
        return self.fixed

    def accepts(self, kind: pa.DataType) -> bool:
        return self.family(kind)

    def values(self, column: pa.Array) -> list[Any]:
        return column_values(column)

    def check(self, column: pa.Array) -> None:
        """Do nothing: the type of the column proves all values."""

    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        return values  # the conversion to a column of a fixed type examines them


@dataclass(frozen=True)
class OpenType(LeafType):
    """A type whose columns differ: decimals have digits, and datetimes a zone or none. `cls`: the class of its values."""

    cls: type
    inner: pa.DataType

    @property
    def default(self) -> pa.DataType:
        return self.inner

    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        _expect(values, self.name, lambda kind: issubclass(kind, self.cls))
        return values


@dataclass(frozen=True)
class ChosenType(FieldType):
    """A type of few values: those of an Enum, or of a Literal. `members`: the values, by what is in the column."""

    name: str
    of: FieldType
    members: Mapping[Any, Any]

    @property
    def fixed(self) -> pa.DataType | None:  # type: ignore[override]  # it follows from its values
        return self.of.fixed

    @property
    def default(self) -> pa.DataType:
        return self.of.default

    def accepts(self, kind: pa.DataType) -> bool:
        return self.of.accepts(kind)

    def values(self, column: pa.Array) -> list[Any]:
        given = column_values(column)
        try:
            return [self.members[value] for value in given]
        except KeyError as error:
            raise UnfitError(f"{error.args[0]!r:.200} is no value of {self.name}") from error

    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        known = {(type(member), member): value for value, member in self.members.items()}
        try:
            return [known[type(value), value] for value in values]
        except (KeyError, TypeError) as error:
            wrong = next(value for value in values if type(value) not in {kind for kind, _ in known} or (type(value), value) not in known)
            raise UnfitError(f"{wrong!r:.200} is no value of {self.name}") from error


@dataclass(frozen=True)
class ListType(FieldType):
    """A list, tuple or set of values of one type; `cls` is which."""

    name: str
    cls: type
    item: Slot

    @property
    def fixed(self) -> pa.DataType | None:  # type: ignore[override]  # it follows from its values
        return None if self.item.kind.fixed is None else pa.list_(self.item.kind.fixed)

    @property
    def default(self) -> pa.DataType:
        return pa.list_(self.item.kind.default)

    def accepts(self, kind: pa.DataType) -> bool:
        return is_list(kind) and self.item.accepts(kind.value_type) and _in_microseconds(kind.value_type)

    def values(self, column: pa.Array) -> list[Any]:
        items = iter(self.item.values(column.flatten()))
        lengths = pc.list_value_length(column).to_pylist()
        made = [self.cls([next(items) for _ in range(length)]) for length in lengths]
        if issubclass(self.cls, (set, frozenset)) and any(len(each) < length for each, length in zip(made, lengths, strict=True)):
            raise UnfitError(f"a list that has a value twice, which {self.name} can't hold")
        return made

    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        _expect(values, self.name, lambda kind: kind is self.cls)
        items = iter(self.item.plain(list(chain.from_iterable(values))))
        return [[next(items) for _ in range(len(each))] for each in values]


@dataclass(frozen=True)
class DictType(FieldType):
    """A dict with keys and values of one type each, in a column of maps."""

    name: str
    key: Slot
    item: Slot

    @property
    def fixed(self) -> pa.DataType | None:  # type: ignore[override]  # it follows from its keys and values
        key, item = self.key.kind.fixed, self.item.kind.fixed
        return None if key is None or item is None else pa.map_(key, item)

    @property
    def default(self) -> pa.DataType:
        return pa.map_(self.key.kind.default, self.item.kind.default)

    def accepts(self, kind: pa.DataType) -> bool:
        if not pa.types.is_map(kind) or not self.key.accepts(kind.key_type) or not self.item.accepts(kind.item_type):
            return False
        return _in_microseconds(kind.key_type) and _in_microseconds(kind.item_type)

    def values(self, column: pa.Array) -> list[Any]:
        kind = pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)]))
        pairs = column.cast(kind)
        keys, items = pairs.flatten().flatten()
        given = zip(self.key.values(keys), self.item.values(items), strict=True)
        lengths = pc.list_value_length(pairs).to_pylist()
        made = [dict(next(given) for _ in range(length)) for length in lengths]
        if any(len(each) < length for each, length in zip(made, lengths, strict=True)):
            raise UnfitError("a map that has a key twice, which a dict can't hold")
        return made

    def plain(self, values: Sequence[Any]) -> Sequence[Any]:
        _expect(values, self.name, lambda kind: kind is dict)
        keys = iter(self.key.plain(list(chain.from_iterable(values))))
        items = iter(self.item.plain(list(chain.from_iterable(each.values() for each in values))))
        return [{next(keys): next(items) for _ in range(len(each))} for each in values]


def _in_microseconds(kind: pa.DataType) -> bool:
    """Return True unless the type is a timestamp finer than a datetime."""
    return not pa.types.is_timestamp(kind) or kind.unit != "ns"


def _expect(values: Sequence[Any], name: str, allowed: Callable[[type], bool]) -> None:
    """Raise UnfitError for a value of a type that isn't allowed."""
    wrong = next((kind for kind in set(map(type, values)) if not allowed(kind)), None)
    if wrong is not None:
        value = next(value for value in values if type(value) is wrong)
        raise UnfitError(f"{value!r:.200} ({wrong.__name__}) is no {name}")
