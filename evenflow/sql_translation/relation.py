"""A relation: a stream with the names that SQL gives its columns, and what is known of its times.

Every refusal of a query is about one of these properties, not about a form of the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from ..engine.columns import Columns
from ..engine.errors import FlowError
from ..engine.plan.graph import Input
from ..engine.updates import Updates
from ..stream import Stream


@dataclass(frozen=True, slots=True)
class Window:
    """A window that a query names. `kind`: TUMBLE, HOP or SESSION; `time`: a column, or None for the time of arrival.

    `lengths` in microseconds; `by`: the partition of sessions, None if they are those of the groups.
    """

    kind: str
    time: str | None
    lengths: tuple[int, ...]
    by: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The columns with the bounds of windows that are over, `length` microseconds each, one every `step`."""

    start: str
    end: str
    step: int
    length: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows to be ranked by ROW_NUMBER: the partition's columns, the order, and the SQL name of the rank."""

    partition: tuple[str, ...]
    order: tuple[tuple[str, str], ...]
    rank: str


@dataclass(frozen=True)
class Relation:
    """A stream of a query. `names`: its columns by their SQL names, `alias.name` inside a query.

    `times`: columns whose value is the row's event time plus so many microseconds. `marks`: SQL names of columns that exist only
    once rows are grouped: a window's "start" or "end", or "now", the time of arrival.
    """

    stream: Stream
    names: Mapping[str, str]
    times: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    window: Window | None = None
    bounds: Bounds | None = None
    ranked: Ranked | None = None

    @cached_property
    def columns(self) -> Columns:
        """The known columns of the stream."""
        return self.stream.flow.graph.columns_of(Input(self.stream.node.id, self.stream.port))

    @property
    def updates(self) -> Updates | None:
        """The updates that the stream carries, None if it is append-only."""
        return self.stream.flow.graph.updates_of(Input(self.stream.node.id, self.stream.port))

    def schema(self) -> pa.Schema:
        """Return the stream's columns. Raises FlowError if they aren't known."""
        found = self.columns.schema()
        if found is None:
            raise FlowError("SQL: the columns of a stream aren't known: declare them, for example by schema= where it is read or mapped")
        return found

    def of_stream(self, stream: Stream) -> Relation:
        """Return the relation with another stream that has the same columns."""
        return replace(self, stream=stream)

    def renamed(self, new: Mapping[str, str]) -> Relation:
        """Return the relation with other column names; `new` has a name for every column."""
        changed = {old: name for old, name in new.items() if old != name}
        stream = self.stream.rename(changed) if changed else self.stream
        bounds = self.bounds and replace(self.bounds, start=new[self.bounds.start], end=new[self.bounds.end])
        names = {name: new[column] for name, column in self.names.items()}
        times = {new[column]: offset for column, offset in self.times.items()}
        return replace(self, stream=stream, names=names, times=times, bounds=bounds)
