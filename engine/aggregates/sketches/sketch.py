"""Sketches: state of any size per group, kept as the bytes of sorted entries.

The entries of all groups are processed in one array, so merging costs per entry, not per group. A group's bytes are a
function of the multiset of values that it has seen: two workers that saw the same values in any order hold equal bytes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import ProtocolError
from ..base import Accumulator, Array, Codes, Parts, objects, sampled_bytes
from ..column import InputColumn


class SketchAccumulator(Accumulator):
    """The base of accumulators with the parts (sketch,), an object array of bytes; empty where nothing was seen."""

    part_types = (pa.large_binary(),)

    def __init__(self, source: InputColumn, output_type: pa.DataType) -> None:
        self.source, self.operator, self.output_type = source, source.operator, output_type

    @abstractmethod
    def malformed(self, sketch: bytes) -> bool:
        """Return True if bytes received from another worker can't be a sketch."""

    def empty(self, n: int) -> Parts:
        return (np.full(n, b"", object),)

    def merge(self, left: Parts, right: Parts) -> Parts:
        mine: Array = left[0]
        theirs: Array = right[0]
        had, came = sketch_sizes(mine) > 0, sketch_sizes(theirs) > 0
        merged = np.where(came, theirs, mine)
        both = np.flatnonzero(had & came)
        if len(both):
            codes = np.arange(len(both))
            (merged[both],) = self.combine((np.concatenate([mine[both], theirs[both]]),), np.concatenate([codes, codes]), len(both))
        return (merged,)

    def from_arrow(self, arrays: Sequence[pa.Array]) -> Parts:
        self.check_types(arrays)
        sketches = objects(arrays[0].to_pylist())
        for sketch in sketches:
            if sketch is None or self.malformed(sketch):
                raise ProtocolError(
                    f"operator `{self.operator}`: {self.source.function}(`{self.source.name}`): received bytes that are no valid sketch"
                )
        return (sketches,)

    def nbytes(self, parts: Parts) -> int:
        return sampled_bytes(parts[0], len)


def sketch_sizes(sketches: Array) -> npt.NDArray[np.int64]:
    """Return the number of bytes of each sketch."""
    return np.fromiter(map(len, sketches), np.int64, len(sketches))


def entries_of(sketches: Array, codes: Codes, kind: np.dtype[np.void] | type[np.uint64]) -> tuple[Codes, Array]:
    """Return all entries of the sketches in one array, and for each the code of its sketch."""
    dtype = np.dtype(kind)
    return np.repeat(codes, sketch_sizes(sketches) // dtype.itemsize), np.frombuffer(b"".join(sketches), dtype)


def cut(entries: Array, counts: npt.NDArray[np.int64]) -> Array:
    """Return the bytes of each group's entries; `entries` are in the order of the groups, `counts` of them each."""
    data, ends = entries.tobytes(), (np.cumsum(counts) * entries.dtype.itemsize).tolist()
    return objects([data[start:end] for start, end in zip([0, *ends], ends, strict=False)])


def first_of_runs(ordered: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the values that differ from the one before."""
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first
