"""A key to read from the state of a worker, and its value as bytes: no process on its way needs the user's modules.

Nothing is unpickled.

>>> ReadValue.of_row(pa.record_batch({"dest": ["JFK"], "n": [3]})).value()
{'dest': 'JFK', 'n': 3}
>>> ReadValue.of_object({"seen": (1, 2)}).value()
{'seen': (1, 2)}
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...state.packing import pack_value, unpack_value
from ..batch import Batch
from .ids import StepVersion


@dataclass(frozen=True, slots=True)
class KeyToRead:
    """A key as users write it, with its hash64.

    `newest`: the newest step of a migration that the coordinator has begun. `only_type`: compare the type of the key with that of the
    keys here, and don't read.
    """

    key: Hashable
    hash64: int
    newest: StepVersion
    only_type: bool = False


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A row of columns in Arrow's format (`is_row`), or a packed Python value."""

    data: bytes
    is_row: bool

    @classmethod
    def of_row(cls, row: pa.RecordBatch) -> ReadValue:
        """Return a batch of one row as a value."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, row.schema) as writer:
            writer.write_batch(row)
        return cls(sink.getvalue().to_pybytes(), is_row=True)

    @classmethod
    def of_object(cls, value: Any) -> ReadValue:
        """Return a Python object as a value. Raises TypeError, ValueError or OverflowError if it can't be packed."""
        return cls(pack_value(value), is_row=False)

    def value(self) -> Any:
        """Return the row as a dict, or a copy of the Python object."""
        if not self.is_row:
            return unpack_value(self.data)
        (batch,) = pa.ipc.open_stream(self.data)
        return Batch(batch).to_rows()[0]
