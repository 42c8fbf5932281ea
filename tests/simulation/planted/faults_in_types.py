"""Faults in the types of columns: values that are forced into a type that came first."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from evenflow.engine.keys.encoding import KeyTypes
from evenflow.engine.types.value_column import ValueColumn

Patch = pytest.MonkeyPatch


def later_values_are_forced_into_the_first_type(patch: Patch) -> None:
    encoded = ValueColumn.encoded

    def forced(self: Any, values: Any, like: Any = None) -> Any:
        return encoded(self, values, like) if self.kind is None else pa.array(values, self.kind)

    patch.setattr(ValueColumn, "encoded", forced)


def keys_are_forced_into_the_first_type(patch: Patch) -> None:
    with_types = KeyTypes.with_types
    patch.setattr(KeyTypes, "with_types", lambda self, columns: self.types or with_types(self, columns))
    patch.setattr(KeyTypes, "column", lambda self, values, place: pa.array(values, self.types[place]))
