"""Storage and comparison of values of one Arrow type, one per group.

Numbers, booleans and temporal values are kept in numpy arrays of their own width; strings, bytes and decimals as Python
objects. The order is Spark's: NaN is larger than any number, -0.0 equals 0.0, strings are compared by their UTF-8 bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..types.exact import exactly
from .base import Array, Codes, objects, sampled_bytes
from .column import InputColumn

_OBJECTS = (
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


class Values(ABC):
    """The storage of values of one type. Arrow columns passed in have no nulls; arrays may hold anything where no value is."""

    kind: pa.DataType
    """The type of the values, in and out."""

    @abstractmethod
    def blank(self, n: int) -> Array:
        """Return an array with room for `n` values."""

    @abstractmethod
    def extreme(self, column: pa.Array, codes: Codes, groups: int, largest: bool) -> Array:
        """Return the smallest or largest value of each group, shape (groups,)."""

    @abstractmethod
    def reduce(self, values: Array, codes: Codes, groups: int, largest: bool) -> Array:
        """Return what `extreme` does, for stored values."""

    @abstractmethod
    def better(self, left: Array, right: Array, largest: bool) -> Array:
        """Return the smaller or larger of each pair; no value is missing."""

    @abstractmethod
    def read(self, column: pa.Array) -> Array:
        """Return a column, which may hold nulls, as an array."""

    def read_at(self, column: pa.Array, places: npt.NDArray[np.int64]) -> Array:
        """Return the values at these places of a column without nulls as an array."""
        return self.read(column.take(pa.array(places)))

    @abstractmethod
    def write(self, values: Array, seen: npt.NDArray[np.bool_]) -> pa.Array:
        """Return the column of `values`, null where not `seen`."""

    @abstractmethod
    def nbytes(self, values: Array) -> int:
        """Return an estimate of the bytes of an array of values."""

    def carried(self, values: Array, seen: npt.NDArray[np.bool_], narrower: Values) -> Array:
        """Convert stored values of a narrower type to this type. Raises Inexact for a value that would change."""
        return values if narrower.kind == self.kind else self.read(exactly(narrower.write(values, seen), self.kind))


def values_of(source: InputColumn) -> Values:
    """Return the storage for the values of a column. Raises RecordError if they have no order."""
    kind = source.type
    if pa.types.is_floating(kind):
        return FixedValues(kind, pa.float32() if pa.types.is_float16(kind) else kind)
    if pa.types.is_integer(kind):
        return FixedValues(kind, kind)
    if pa.types.is_boolean(kind):
        return FixedValues(kind, pa.uint8())
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return FixedValues(kind, pa.int32() if kind.bit_width == 32 else pa.int64())
    if any(check(source.read_type) for check in _OBJECTS):
        return ObjectValues(kind, source.read_type)
    raise source.refusal("integers, floats, decimals, booleans, strings, bytes, dates, times, timestamps and durations")


class FixedValues(Values):
    """The storage of values of fixed width, as numbers of the type `storage` in the same order."""

    def __init__(self, kind: pa.DataType, storage: pa.DataType) -> None:
        self.kind, self.storage = kind, storage
        self.dtype = np.dtype(storage.to_pandas_dtype())
        self.reinterpreted = pa.types.is_temporal(kind)

    def blank(self, n: int) -> Array:
        return np.zeros(n, self.dtype)

    def extreme(self, column: pa.Array, codes: Codes, groups: int, largest: bool) -> Array:
        return self.reduce(self.read(column), codes, groups, largest)

    def reduce(self, values: Array, codes: Codes, groups: int, largest: bool) -> Array:
        best = np.full(groups, self._identity(largest), self.dtype)
        with np.errstate(invalid="ignore"):
            self._ufunc(largest).at(best, codes, values)
        return best

    def better(self, left: Array, right: Array, largest: bool) -> Array:
        with np.errstate(invalid="ignore"):
            best: Array = self._ufunc(largest)(left, right)
        return best

    def read(self, column: pa.Array) -> Array:
        if column.null_count:
            column = column.fill_null(pa.scalar(0, self.storage).cast(self.kind))
        stored = column if column.type == self.storage else column.view(self.storage) if self.reinterpreted else column.cast(self.storage)
        values: Array = stored.to_numpy(zero_copy_only=False)
        return values + self.dtype.type(0.0) if self.dtype.kind == "f" else values

    def read_at(self, column: pa.Array, places: npt.NDArray[np.int64]) -> Array:
        return self.read(column)[places]

    def write(self, values: Array, seen: npt.NDArray[np.bool_]) -> pa.Array:
        column = pa.array(values, self.storage, mask=None if seen.all() else ~seen)
        return column if self.storage == self.kind else column.view(self.kind) if self.reinterpreted else column.cast(self.kind)

    def nbytes(self, values: Array) -> int:
        return values.nbytes

    def _ufunc(self, largest: bool) -> np.ufunc:
        """Return `maximum`, in which NaN wins, or `fmin`, in which it loses: NaN is the largest value."""
        if largest:
            return np.maximum
        return np.fmin if self.dtype.kind == "f" else np.minimum

    def _identity(self, largest: bool) -> float | int:
        if self.dtype.kind == "f":
            return -np.inf if largest else np.nan
        limits = np.iinfo(self.dtype)
        return int(limits.min if largest else limits.max)


class ObjectValues(Values):
    """The storage of values as Python objects (str, bytes, Decimal), None for none; columns of them arrive as `read_type`."""

    def __init__(self, kind: pa.DataType, read_type: pa.DataType) -> None:
        self.kind, self.read_type = kind, read_type

    def blank(self, n: int) -> Array:
        return np.full(n, None, object)

    def extreme(self, column: pa.Array, codes: Codes, groups: int, largest: bool) -> Array:
        """Compare the distinct values only, and convert only the winners to Python objects."""
        encoded = column.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        nothing = -1 if largest else len(order)
        best = np.full(groups, nothing, np.int64)
        (np.maximum if largest else np.minimum).at(best, codes, rank[encoded.indices.to_numpy()])
        seen = best != nothing
        values = self.blank(groups)
        values[seen] = objects(encoded.dictionary.take(pa.array(order[best[seen]])).to_pylist())
        return values

    def reduce(self, values: Array, codes: Codes, groups: int, largest: bool) -> Array:
        return self.extreme(pa.array(values, self.read_type), codes, groups, largest)

    def better(self, left: Array, right: Array, largest: bool) -> Array:
        pairs = zip(left, right, strict=True)
        return objects([max(a, b) if largest else min(a, b) for a, b in pairs])

    def read(self, column: pa.Array) -> Array:
        return objects(column.to_pylist())

    def write(self, values: Array, seen: npt.NDArray[np.bool_]) -> pa.Array:
        return pa.array(values, self.kind, mask=~seen)

    def nbytes(self, values: Array) -> int:
        return sampled_bytes(values, lambda value: 0 if value is None else value.__sizeof__())
