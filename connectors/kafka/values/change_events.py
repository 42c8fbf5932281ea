"""The interface of the encodings of Debezium's change events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ....engine.types.casting import cast
from .decoding import UndecodableError, Values


@dataclass(frozen=True, slots=True)
class ChangeEvents:
    """Events, one element for each.

    `op`: the operations, texts. `after`: the rows from now on, structs. `before`: the keys of the rows until now, structs. An element
    is null if the event doesn't have it; the events of tombstones have nothing.
    """

    op: pa.Array
    after: pa.StructArray
    before: pa.StructArray


class EventReader(ABC):
    """A stateless reader of change events in one encoding. Picklable."""

    @abstractmethod
    def inferred(self, sample: Callable[[], Values]) -> tuple[pa.Schema, EventReader]:
        """Return the columns of the table, and a reader that knows how the events have them.

        Raises UndecodableError if the columns can't be known, or one has a type that columns of tables can't have.
        """

    @abstractmethod
    def reading(self, columns: pa.Schema, key: tuple[str, ...]) -> EventReader:
        """Return a reader of these columns of a table with this primary key, which are among them."""

    @abstractmethod
    def events(self, values: Values) -> ChangeEvents:
        """Read the records' values; None is a tombstone. Raises UndecodableError or an Arrow error if one of them can't be read."""

    @abstractmethod
    def keys(self, values: Values) -> pa.StructArray:
        """Read the records' keys, none of them None, as structs like `ChangeEvents.before`. Raises the errors of `events`."""


def converted(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return the column with the type of the field. Raises UndecodableError for a value that doesn't fit."""
    try:
        return cast(column, field.type)
    except pa.ArrowException as error:
        raise UndecodableError(f"column `{field.name}`: {error}; name its type in schema=") from error
