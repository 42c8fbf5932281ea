"""Functions of lists and structs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...types.widening import is_list, is_text
from ..trees.problems import BindingError
from .comparisons import comparison
from .operand import Binder, Bound, Kernel, Operand, first_only, nothing, unary


def _length(_kind: pa.DataType) -> Kernel:
    return lambda lists: pc.list_value_length(lists).cast(pa.int64())


def _bounds(lists: pa.Array) -> tuple[Any, Any, Any]:
    """Return where each list begins and ends in `lists.flatten()`, and a mask of the lists that aren't null."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64)
    ends = np.cumsum(lengths)
    return ends - lengths, ends, lists.is_valid().to_numpy(zero_copy_only=False)


def _get(_kind: pa.DataType, index: int) -> Kernel:
    return list_element(index)


def list_element(index: int) -> Kernel:
    """Return the kernel of the elements at an index of lists, from the end if it is negative; null where there is none."""

    def get(lists: pa.Array) -> pa.Array:
        begins, ends, valid = _bounds(lists)
        at = begins + index if index >= 0 else ends + index
        return lists.flatten().take(pa.array(at, mask=~valid | (at >= ends) | (at < begins)))

    return get


def contains(operand: Operand, value: Operand) -> Bound:
    """Bind `list.contains`."""
    if operand.is_null:
        return nothing(pa.bool_(), 2)
    if not is_list(operand.type):
        raise BindingError(f"list.contains works on lists, got {operand.type}")
    if value.constant is None:
        raise BindingError("list.contains takes a value that is the same for all rows, not an expression of columns")
    element = Operand(operand.type.value_type)
    equal = comparison("eq")(element, value)
    converted = [value.constant if kind is None else value.constant.cast(kind) for place, kind in equal.takes if place == 1]
    kind = equal.takes[0][1]

    def kernel(lists: pa.Array) -> pa.Array:
        begins, ends, valid = _bounds(lists)
        elements = lists.flatten()
        found = equal.kernel(elements if kind is None else elements.cast(kind, safe=False), *converted)
        hits = np.concatenate([[0], np.cumsum(pc.fill_null(found, False).to_numpy(zero_copy_only=False))])
        return pa.array(hits[ends] > hits[begins], mask=None if valid.all() else ~valid)

    return first_only(kernel)


def _join(kind: pa.DataType, separator: str) -> Kernel:
    if not is_text(kind.value_type):
        raise BindingError(f"list.join works on lists of texts, got {kind}")
    return lambda lists: pc.binary_join(lists, pa.scalar(separator, kind.value_type))


def _field(kind: pa.DataType, name: str) -> Kernel:
    names = [field.name for field in kind]
    if name not in names:
        raise BindingError(f"struct.field: there is no field `{name}`; there are: {', '.join(names)}")
    place = kind.get_field_index(name)
    if place < 0:
        raise BindingError(f"struct.field: there are several fields `{name}`")
    return lambda structs: pc.struct_field(structs, place)


FUNCTIONS: dict[str, Binder] = {
    "list.len": unary("list.len", is_list, "lists", pa.int64(), _length),
    "list.get": unary("list.get", is_list, "lists", pa.null(), _get),
    "list.contains": contains,
    "list.join": unary("list.join", is_list, "lists of texts", pa.string(), _join),
    "struct.field": unary("struct.field", pa.types.is_struct, "structs", pa.null(), _field),
}
