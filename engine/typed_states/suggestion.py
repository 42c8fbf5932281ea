"""The annotation to write for a value that can't be saved without one.

>>> import numpy as np
>>> annotation_for({"a": [np.zeros(2)]}), annotation_for(bytearray(b"x"))
('dict[str, list[np.ndarray]]', None)
"""

from __future__ import annotations

from typing import Any

from ...state.packed_types import CONTAINERS
from ...state.packing import first_foreign
from ..typed_rows.field_types import UnfitError
from ..typed_rows.row_classes import UnsupportedError
from .state_annotations import value_type

_DEEPEST = 5
"""The most containers inside one another for which an annotation is written."""


def annotation_for(value: Any, depth: int = 0) -> str | None:
    """Return an annotation with which the value can be saved; None if no annotation helps."""
    kind = type(value)
    if kind not in CONTAINERS:
        return _named(value, kind)
    wrong = next((part for part in (value.values() if kind is dict else value) if first_foreign([part]) is not None), None)
    inner = None if wrong is None or depth == _DEEPEST else annotation_for(wrong, depth + 1)
    if inner is None:
        return None
    if kind is dict:
        return f"dict[{type(next(iter(value))).__name__}, {inner}]"
    return f"tuple[{inner}, ...]" if kind is tuple else f"{kind.__name__}[{inner}]"


def _named(value: Any, kind: type) -> str | None:
    try:
        value_type(kind).plain(value)
    except (UnsupportedError, UnfitError):
        return None
    package = {"numpy": "np.", "pyarrow": "pa."}.get(kind.__module__.partition(".")[0], "")
    return f"{package}{kind.__name__}"
