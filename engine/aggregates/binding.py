"""The aggregates of one operator, bound to the types of the columns that they read.

A column that has held only nulls so far has the type null. When a value reveals its type, or a wider type arrives, the
aggregates get a new binding, and the state of the old one is converted. The results equal those of a stream that had the
widest types from the start.

>>> from .named.functions import count, max
>>> old = Binding("step", {"known": count("x"), "high": max("x")}, pa.schema({"x": pa.null()}))
>>> new = old.holding(pa.schema({"x": pa.string()}))
>>> nothing = tuple(accumulator.empty(1) for accumulator in old.accumulators)
>>> [a.finish(parts).to_pylist() for a, parts in zip(new.accumulators, new.carried(nothing, old), strict=True)]
[[0], [None]]
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ..errors import RecordError
from ..types.exact import Inexact
from ..types.widening import value_type, wider
from .base import AggregateFunction, Parts
from .computed import ComputedAccumulator, share_expressions
from .filtered import FilteredAccumulator, share_conditions


class Binding:
    """The accumulators of `functions`, in their order, for one set of input types.

    `input`: the columns that the aggregates read, with their types; `written` is `input` as bytes. `label` differs for different
    types. Raises RecordError, naming operator and column, if a column is missing in `schema` or has a type that an aggregate
    can't use.
    """

    def __init__(self, operator: str, functions: Mapping[str, AggregateFunction], schema: pa.Schema) -> None:
        self._operator, self._functions = operator, functions
        self.accumulators = tuple(function.bind(schema, operator) for function in functions.values())
        share_conditions(self.accumulators)
        inner = (each.of if isinstance(each, FilteredAccumulator) else each for each in self.accumulators)
        share_expressions(each for each in inner if isinstance(each, ComputedAccumulator))
        columns = {name for function in functions.values() for name in function.reads(schema)}
        self.input = pa.schema([(field.name, value_type(field.type)) for field in schema if field.name in columns])
        self.label = "".join(f" {field.name}:{field.type}" for field in self.input)
        self.written: bytes = self.input.serialize().to_pybytes()

    def holding(self, schema: pa.Schema) -> Binding:
        """Return this binding if it holds the types of `schema`, otherwise one that holds both.

        Raises RecordError, naming operator, column and both types, if no type holds both, or if the column is missing.
        """
        wide = pa.schema([(field.name, self._type_holding(field, schema)) for field in self.input])
        return self if wide.equals(self.input) else Binding(self._operator, self._functions, wide)

    def carried(self, parts: tuple[Parts, ...], old: Binding) -> tuple[Parts, ...]:
        """Convert the state `parts` of `old`, a binding of narrower types, to this binding."""
        carried = []
        for accumulator, before, part in zip(self.accumulators, old.accumulators, parts, strict=True):
            typed_now = accumulator.typed and not before.typed
            try:
                carried.append(accumulator.empty(len(part[0])) if typed_now else accumulator.carried(part, before))
            except Inexact as error:
                raise RecordError(self._operator, f"an aggregate keeps a value of a column that got another type: {error}") from error
        return tuple(carried)

    def _type_holding(self, field: pa.Field, schema: pa.Schema) -> pa.DataType:
        index = schema.get_field_index(field.name)
        if index < 0:
            problem = f"column `{field.name}` was {field.type} and is now missing; there are: {', '.join(schema.names)}"
            raise RecordError(self._operator, problem)
        now = value_type(schema.field(index).type)
        kind = wider(field.type, now)
        if kind is None:
            problem = f"column `{field.name}` was {field.type} and is now {now}, and no type holds both: give it one type in the source"
            raise RecordError(self._operator, problem)
        return kind
