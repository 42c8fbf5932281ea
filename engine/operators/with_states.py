"""An operator whose keyed state is a `KeyedStates`: it leaves, arrives and is saved as that says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from ..batch import Batch
from ..changes import Changes
from ..routing import Move
from .base import Emit
from .keyed import Departing, KeyedOperator
from .keyed_states import KeyedStates
from .refusals import Refused, Refusing


class WithStates(Refusing, KeyedOperator):
    """`states` is made by `open`, which may fail; what is asked of the operator at any time knows that."""

    states: KeyedStates
    keyed = True

    @abstractmethod
    def attempt(self, batch: Batch) -> list[Batch]:
        """Process the batch; what is to be emitted. Raises Refused for the first row that is refused; the states are then undone."""

    def process(self, batch: Batch, emit: Emit) -> None:
        self.note_rows(batch.rows)
        self._take(batch, emit)

    def _take(self, batch: Batch, emit: Emit) -> None:
        """A row that is refused leaves no trace: the rows before it are processed anew, from the states that the batch began with."""
        while batch.num_rows:
            try:
                results = self.attempt(batch)
            except Refused as refused:
                if not self.refusals.stops:
                    self.states.undo()
                    self._take(batch.slice(0, refused.place), emit)
                self.refusals.take(refused, batch, emit)
                batch = batch.slice(refused.place + 1, batch.num_rows - refused.place - 1)
            else:
                for result in results:
                    emit(result)
                return

    def depart(self, move: Move) -> Departing:
        return self.states.depart(move)

    def install(self, state: Batch) -> None:
        self.states.install(state)

    def check_restored(self, schema: pa.Schema) -> None:
        self.states.check_kind(schema)

    def snapshot(self) -> Iterator[Batch]:
        return self.states.snapshot()

    def changes(self) -> Changes | None:
        return self.states.changes()

    def delta(self, changes: Changes) -> Iterator[Batch]:
        return self.states.delta(changes)

    def state_bytes(self) -> int:
        return self.states.state_bytes() if hasattr(self, "states") else 0

    def close(self) -> None:
        if hasattr(self, "states"):
            self.states.close()
