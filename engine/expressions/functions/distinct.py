"""Kernels that compute each distinct value of a column once, where values repeat.

>>> upper = over_distinct(pc.utf8_upper)
>>> upper(encoded_if_repeated(pa.array(["a", "b"] * 500)))[:3].to_pylist()
['A', 'B', 'A']
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .operand import Kernel

LEAST = 256
"""The fewest rows for which looking for repeated values pays."""


def encoded_if_repeated(values: Any) -> Any:
    """Return the values with a dictionary if at most half of the first `LEAST` differ; other values as they are."""
    if not isinstance(values, pa.Array) or len(values) < LEAST or pc.count_distinct(values.slice(0, LEAST)).as_py() > LEAST // 2:
        return values
    return values.dictionary_encode()


def over_distinct(kernel: Kernel) -> Kernel:
    """Return the kernel of one operand, which computes the values of a dictionary once."""

    def computed(values: Any) -> Any:
        return kernel(values.dictionary).take(values.indices) if isinstance(values, pa.DictionaryArray) else kernel(values)

    return computed


def with_dictionary(kernel: Kernel) -> Kernel:
    """Return the kernel of one operand, whose result has a dictionary if the operand has one."""

    def computed(values: Any) -> Any:
        if not isinstance(values, pa.DictionaryArray):
            return kernel(values)
        return pa.DictionaryArray.from_arrays(values.indices, kernel(values.dictionary))

    return computed
