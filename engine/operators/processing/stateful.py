"""The base of operators with a user's function per record and a state per key: a refused record leaves no trace in a state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from ...batch import Batch
from ...context import Emit
from ...functions.error_policy import Refused
from ...keyed_state.kinds.objects import StateObjects
from ..function import FunctionInstance
from ..keyed import KeyedInstance


class StatefulInstance(FunctionInstance, KeyedInstance):
    """An instance that processes batches by `attempt`, which is repeated after each refused record."""

    state: StateObjects

    def key_types(self) -> Sequence[pa.DataType]:
        return self.state.types.types

    @abstractmethod
    def attempt(self, batch: Batch) -> list[Batch]:
        """Process the batch and return its results.

        Raises Refused for the first refused row; the caller then restores the states.
        """

    def given(self, batch: Batch) -> Batch:
        """Return the rows of a batch as the user's function gets them."""
        return batch

    def process(self, batch: Batch, emit: Emit) -> None:
        self.note_rows(batch.rows)
        self._take(batch, emit)

    def _take(self, batch: Batch, emit: Emit) -> None:
        """Handle a refused row: the rows before it are processed again, from the states before the batch."""
        while batch.num_rows:
            try:
                results = self.attempt(batch)
            except Refused as refused:
                if not self.errors.stops:
                    self.state.undo()
                    self._take(batch.slice(0, refused.place), emit)
                self.errors.take(refused, self.given(batch), emit)
                batch = batch.slice(refused.place + 1, batch.num_rows - refused.place - 1)
            else:
                for result in results:
                    emit(result)
                return
