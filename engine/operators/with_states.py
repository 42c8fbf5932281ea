"""An operator whose keyed state is a `KeyedStates`: it leaves, arrives and is saved as that says."""

from __future__ import annotations

from collections.abc import Iterator

from ..batch import Batch
from ..routing import Move
from .keyed import Departing, KeyedOperator
from .keyed_states import KeyedStates


class WithStates(KeyedOperator):
    """`states` is made by `open`, which may fail; what is asked of the operator at any time knows that."""

    states: KeyedStates

    def depart(self, move: Move) -> Departing:
        return self.states.depart(move)

    def install(self, state: Batch) -> None:
        self.states.install(state)

    def snapshot(self) -> Iterator[Batch]:
        return self.states.snapshot()

    def state_bytes(self) -> int:
        return self.states.state_bytes() if hasattr(self, "states") else 0

    def close(self) -> None:
        if hasattr(self, "states"):
            self.states.close()
