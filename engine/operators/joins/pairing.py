"""The base of joins: the known columns of their results before the job runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ...columns import Columns
from ...joins.join_columns import How, clash, right_names, shared_keys
from ...joins.key_types import common_type
from ...joins.sides import LEFT, RIGHT, Side
from ..two_inputs import TwoInputs

NULLS_OF: Mapping[How, tuple[Side, ...]] = {"left": (RIGHT,), "right": (LEFT,), "full": (LEFT, RIGHT)}
"""The sides that have nulls in a row without a partner."""


class Pairing(TwoInputs):
    """A join. `how`: the rows that are emitted; `suffix`: added to columns of right whose name is taken."""

    how: How
    suffix: str

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        left, right = inputs
        if self.how in ("semi", "anti"):
            return left
        types = {result: right.type_of(name) for name, result in self._right_names(left, right).items()}
        return Columns({**left.types, **self._key_types(left, right), **types}, left.complete and right.complete)

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        left, right = inputs
        pairs = self.how not in ("semi", "anti")
        return super().problem(inputs) or (clash(left.types, self._right_names(left, right)) if pairs else None)

    def _key_types(self, left: Columns, right: Columns) -> dict[str, pa.DataType | None]:
        """Return the types of key columns of both sides in results that may have right's keys alone."""
        if self.how not in ("right", "full"):
            return {}
        kinds = {name: (left.type_of(name), right.type_of(name)) for name in shared_keys(self.left_keys, self.right_keys)}
        return {name: None if one is None or other is None else common_type(one, other) for name, (one, other) in kinds.items()}

    def _right_names(self, left: Columns, right: Columns) -> dict[str, str]:
        """Return the certain names in the result of right's columns."""
        certain = [name for name in right.types if left.complete or name in left.types]
        return right_names(left.types, certain, shared_keys(self.left_keys, self.right_keys), self.suffix)
