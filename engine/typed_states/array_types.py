"""Types of numpy arrays and of Arrow's scalars, which are packed as they are.

>>> import numpy as np
>>> ArrayType("ndarray", None).plain(np.array([1, None]))
Traceback (most recent call last):
    ...
evenflow.engine.typed_rows.field_types.UnfitError: expected ndarray of numbers, times or texts of fixed length, got one of object
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...state.packed_types import SCALARS, packable_dtype
from ..typed_rows.field_types import UnfitError
from .value_types import ValueType


@dataclass(frozen=True)
class ArrayType(ValueType):
    """A numpy array of any shape, with elements of the class `element`; None for any that can be packed."""

    name: str
    element: type | None

    @property
    def text(self) -> str:
        return "ndarray" if self.element is None else f"ndarray of {self.element.__name__}"

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if type(value) is not np.ndarray:
            self.refuse(value)
        if not packable_dtype(value.dtype):
            raise UnfitError(f"expected {self.name} of numbers, times or texts of fixed length, got one of {value.dtype}")
        if self.element is not None and not issubclass(value.dtype.type, self.element):
            raise UnfitError(f"expected {self.text}, got one of {value.dtype}")
        return value

    def value(self, plain: Any) -> Any:
        return self.plain(plain)


@dataclass(frozen=True)
class ScalarType(ValueType):
    """A scalar of Arrow of the class `cls`."""

    name: str
    cls: type

    def plain(self, value: Any, newest: int | None = None) -> Any:
        if not isinstance(value, self.cls) or type(value) not in SCALARS:
            self.refuse(value)
        if isinstance(value, pa.ExtensionScalar) and not value.type.extension_name.startswith("arrow."):
            raise UnfitError(f"expected a scalar of a type of Arrow's own, got {value.type}: store .value")
        return value

    def value(self, plain: Any) -> Any:
        return self.plain(plain)
