"""The first rows of each group in an order: the state of `top`, `max_by` and `min_by`.

Rows that are equal in the columns of the order are ordered by all their columns, so the result doesn't depend on arrival, unless
the order says that it does. Most
rows of a batch are discarded by their first column alone; only the remaining candidates are compared in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...batch import Batch
from ..base import Codes, Parts
from ..column import InputColumn
from ..kept_values import ListAccumulator, sorted_in_groups, with_ties_in_order
from ..ragged import Ragged
from ..row_order import Ints, has_order, order_keys, sort_keys


@dataclass(frozen=True, slots=True)
class Order:
    """The columns `by` with True for falling order, the most important one first, and the number `n` of rows to keep.

    Rows without a value in one of the columns are ignored.
    """

    by: tuple[tuple[str, bool], ...]
    n: int
    ties: bool = False
    """True if all rows that equal the n-th in `by` are kept, too."""

    of_equal: Literal["first", "last"] | None = None
    """The row that is kept of those that are equal in `by`: the one that arrived first, or last. None: their columns decide.

    Only for one row, without ties.
    """


class FirstRowsAccumulator(ListAccumulator):
    """An accumulator whose lists hold rows as structs; rows without a value in a column in `required` are ignored."""

    def __init__(
        self, operator: str, columns: Sequence[InputColumn], order: Order, required: Sequence[str], output_type: pa.DataType
    ) -> None:
        super().__init__(operator, pa.struct([(column.name, column.read_type) for column in columns]), output_type)
        self.columns, self.order, self.required = columns, order, required
        for column in columns:
            if not has_order(column.type) and (order.of_equal is None or column.name in required):
                raise column.refusal("columns that have an order, to decide between equal rows, so not on nested ones")

    def partial(self, batch: Batch, codes: Codes, groups: int) -> Parts:
        columns = {column.name: column.values(batch) for column in self.columns}
        there = _without_nulls([columns[name] for name in self.required])
        if there is not None:
            place = pa.array(there)
            codes, columns = codes[there], {name: column.take(place) for name, column in columns.items()}
        kept = self._kept(columns, codes, groups)
        place = pa.array(kept)
        rows = pa.StructArray.from_arrays([column.take(place) for column in columns.values()], fields=list(self.kind))
        return (Ragged.of(rows, np.bincount(codes[kept], minlength=groups)),)

    def reduced(self, values: pa.Array, codes: Codes, groups: int) -> Ragged:
        kept = self._kept({field.name: values.field(field.name) for field in self.kind}, codes, groups)
        return Ragged.of(values.take(pa.array(kept)), np.bincount(codes[kept], minlength=groups))

    def _kept(self, columns: Mapping[str, pa.Array], codes: Codes, groups: int) -> npt.NDArray[np.intp]:
        """Return the indices of the rows that are kept, in order by group."""
        (first, falls), *others = self.order.by
        keys = _by_keys(columns[first], falls)
        order = sorted_in_groups(keys, codes, groups)
        order = order[_among_first(self.order.n, codes[order], groups, [keys[order]])]

        def rest(places: npt.NDArray[np.intp]) -> list[npt.NDArray[Any]]:
            of_equal = self.order.of_equal
            read = columns if of_equal is None else dict(others)
            some = {name: columns[name].take(pa.array(places)) for name in read}
            by = [_by_keys(some[name], down) for name, down in others]
            if of_equal is not None:  # earlier rows came first
                return [*by, -places if of_equal == "last" else places]
            return [*by, *sort_keys([(column, False) for column in some.values()])]

        order = with_ties_in_order(order, codes, keys, rest)
        equal_in = [keys, *(_by_keys(columns[name], down) for name, down in others)] if self.order.ties else []
        return order[_among_first(self.order.n, codes[order], groups, [keys[order] for keys in equal_in])]


def _among_first(n: int, codes: Codes, groups: int, equal_in: Sequence[Ints]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows among the first n of their group, or equal to the n-th in all of `equal_in`.

    The rows are in order by group.
    """
    counts = np.bincount(codes, minlength=groups)
    starts = np.cumsum(counts) - counts
    kept: npt.NDArray[np.bool_] = np.arange(len(codes)) - starts[codes] < n
    if equal_in and not kept.all():
        nth = (starts + np.minimum(counts, n) - 1)[codes]
        kept |= np.logical_and.reduce([keys == keys[nth] for keys in equal_in])
    return kept


def _by_keys(column: pa.Array, falling: bool) -> Ints:
    keys = order_keys(column, one_zero=True)
    return ~keys if falling else keys


def _without_nulls(columns: Sequence[pa.Array]) -> npt.NDArray[Any] | None:
    """Return the rows without a null in any of these columns; None for all of them."""
    valid = [column.is_valid().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    return np.flatnonzero(np.logical_and.reduce(valid)) if valid else None
