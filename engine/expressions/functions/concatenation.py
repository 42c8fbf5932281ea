"""`+` of texts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...types.widening import is_text
from .operand import Binder, Bound, Operand, nothing


def with_texts(add: Binder) -> Binder:
    """Return the binder of `+` that also takes texts, next to what `add` takes."""

    def bind(left: Operand, right: Operand) -> Bound:
        texts = [is_text(operand.type) for operand in (left, right)]
        if not any(texts):
            return add(left, right)
        if left.is_null or right.is_null:
            return nothing(pa.string(), 2)
        if not all(texts):
            return add(left, right)  # an error
        kind = pa.string() if left.type == right.type == pa.string() else pa.large_string()
        end = pa.scalar("", kind)
        return Bound(lambda a, b: pc.binary_join_element_wise(a, b, end), ((0, kind), (1, kind)))

    return bind
