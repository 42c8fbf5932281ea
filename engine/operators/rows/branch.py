"""The operator `branch`: the rows for which a predicate is true on one port, all others on another."""

from __future__ import annotations

from dataclasses import dataclass

from ...batch import Batch
from ...context import Context, Emit
from .filter import Filter, FilterInstance, Mask

OTHERWISE = "false"
"""The port of the rows for which the predicate is not true."""


@dataclass(frozen=True, eq=False)
class Branch(Filter):
    """A `Filter` that loses no rows: those for which the predicate is false, or an expression is null, go to the port "false"."""

    ports = ("out", OTHERWISE)

    def open(self, context: Context) -> BranchInstance:
        return BranchInstance(self, context)


class BranchInstance(FilterInstance):
    """An instance that evaluates the predicate once for both ports."""

    def pass_on(self, batch: Batch, mask: Mask, emit: Emit) -> None:
        super().pass_on(batch, mask, emit)
        if not mask.all():
            emit(batch.filter(~mask), OTHERWISE)
