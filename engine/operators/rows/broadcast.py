"""The operator `broadcast`: it puts the rows of a stream in one order, for all workers of the operators that read it.

It has one worker. So every reader gets the same rows in the same order, whatever number of workers the stream before it has: with
two, rows of one key could arrive in different orders, and the workers' copies would differ for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...batch import Batch
from ...broadcast_rows import tagged_rows
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...expressions.evaluation import Condition, condition_problem
from ...expressions.expression import Expression
from ...keys.encoding import key_column
from ...updates import Updates
from ..base import Operator, OperatorInstance


@dataclass(frozen=True, eq=False)
class Broadcast(Operator):
    """An operator in one worker. `keys`: the newest row of each value of these columns is kept; `delete`: true for a row that removes it.

    `version`: the column whose highest value makes the newest row, None for the order of arrival.
    """

    keys: tuple[str, ...]
    delete: Expression | None = None
    version: str | None = None

    checked_at_once = True

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        return None

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        missing = next((key for key in self.keys if inputs[0].lacks(key)), None)
        if missing is not None:
            return f"no key column `{missing}`; there are: {inputs[0].listed()}"
        if self.version is not None and inputs[0].lacks(self.version):
            return f"version={self.version!r}: no such column; there are: {inputs[0].listed()}"
        problem = condition_problem(self.delete.tree, inputs[0]) if self.delete is not None else None
        return problem and f"delete={problem}"

    def open(self, context: Context) -> BroadcastInstance:
        return BroadcastInstance(self, context)

    def describe(self) -> str:
        deleted = f", deleted where {self.delete!r}" if self.delete is not None else ""
        newest = f" with the highest {self.version}" if self.version is not None else ""
        return f"newest row by {', '.join(self.keys)}{newest}{deleted}, to every worker"


class BroadcastInstance(OperatorInstance):
    """An instance without state: the workers that read it have the copies."""

    def __init__(self, operator: Broadcast, context: Context) -> None:
        super().__init__(context)
        self._keys, self._version = operator.keys, operator.version
        self._delete = Condition(operator.delete.tree, context.name, "delete=") if operator.delete is not None else None

    def process(self, batch: Batch, emit: Emit) -> None:
        for key in self._keys:
            key_column(batch.rows, key, self.context.name)
        if self._version is not None:
            self._check_versions(batch, key_column(batch.rows, self._version, self.context.name))
        deletes = pa.array(self._delete.true_rows(batch)) if self._delete is not None else None
        emit(Batch(tagged_rows(batch.rows, deletes)))

    def _check_versions(self, batch: Batch, versions: pa.Array) -> None:
        """Raise RecordError for a row without a version."""
        if versions.null_count:
            place = int(np.flatnonzero(versions.is_null())[0])
            problem = f"the version `{self._version}` is null: give each row one, or filter such rows before"
            raise RecordError(self.context.name, problem, record=batch.slice(place, 1).to_rows()[0])
