"""The operator `process` with a broadcast stream: a user's `KeyedFunction` that also reads the newest rows of that stream.

Rows of the two inputs meet in the order of their arrival. For one key the copy never goes back: when the key moves, its new owner
has every row of the broadcast stream that the old owner had applied.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...batch import Batch
from ...broadcast_rows import is_broadcast
from ...context import Context, Emit
from ...errors import ProtocolError
from ...functions.state_types import described, value_types
from ...keyed_state.kinds.broadcast_copy import BroadcastCopy
from ...keyed_state.kinds.broadcast_records import BroadcastRecords
from ...keyed_state.kinds.migration import Migration
from ...keyed_state.kinds.records import StateRecords
from ...state_description import StateDescription, columns_text
from .process import Process, ProcessInstance


@dataclass(frozen=True, eq=False, kw_only=True)
class BroadcastProcess(Process):
    """An operator over a keyed input and a broadcast stream. `broadcast_keys`, `version`: of the latter."""

    broadcast_keys: tuple[str, ...]
    version: str | None = None

    def state_description(self) -> StateDescription:
        newest = f"{columns_text(self.broadcast_keys)}{f' with version {self.version!r}' if self.version is not None else ''}"
        traits = {"keys": columns_text(self.keys), "keys of the broadcast stream": newest}
        return described("a process with a broadcast stream", traits, type(self.function))

    def open(self, context: Context) -> BroadcastProcessInstance:
        return BroadcastProcessInstance(self, context)

    def records(self, context: Context, migration: Migration) -> StateRecords:
        copy, types = BroadcastCopy(self.broadcast_keys, context.name, self.version), value_types(type(self.function))
        undoable = self.on_error != "stop"
        return BroadcastRecords(context, self.keys, self.function.lives(), types, copy, undoable=undoable, migration=migration)

    def describe(self) -> str:
        return f"{super().describe()}, with all rows by {', '.join(self.broadcast_keys)}"


class BroadcastProcessInstance(ProcessInstance):
    """An instance with a copy of the broadcast stream's rows."""

    state: BroadcastRecords

    def __init__(self, operator: BroadcastProcess, context: Context) -> None:
        super().__init__(operator, context)
        self._context.read_broadcast(self.state.copy.rows)

    def process(self, batch: Batch, emit: Emit) -> None:
        if is_broadcast(batch.rows.schema):
            self.state.copy.apply(batch.rows)
        elif not self.state.copy.here:
            raise ProtocolError(f"operator `{self.context.name}`: worker {self.context.index} got rows before the broadcast rows")
        else:
            super().process(batch, emit)
