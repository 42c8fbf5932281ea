"""Reads of the state of one key, between two batches, for a coordinator that can only guess which worker has it.

Invariant: a value is that of a worker which has all state of the key. In a migration that is the old owner up to its implicit
barrier, and the new owner once the state has arrived; between the two, no worker answers.
"""

from __future__ import annotations

import numpy as np

from ..errors import RecordError
from ..keys.typed_key import typed_key
from ..operators.keyed import KeyedInstance
from ..protocol.effects import StateRead
from ..protocol.read_value import KeyToRead
from .handover import Handovers


def read_key(operator: KeyedInstance, handovers: Handovers, number: int, wanted: KeyToRead) -> StateRead:
    """Look for a key in the state of `operator`, for request `number`."""
    types, hashes = operator.key_types(), np.array([wanted.hash64], np.uint64)
    try:
        key = typed_key(wanted.key, operator.keys, types, operator.context.name) if types else None
        if wanted.only_type:
            return StateRead(number, typed=bool(types))
        if not handovers.holds(hashes, wanted.newest) and (key is None or not handovers.arrived(hashes, key)):
            return StateRead(number, here=False)
        value = operator.read(key) if key is not None else None
    except RecordError as error:
        return StateRead(number, problem=str(error))
    except (TypeError, ValueError, OverflowError) as error:
        return StateRead(number, problem=f"operator `{operator.context.name}`: the state of key {wanted.key!r} can't be sent: {error}")
    return StateRead(number, value, typed=bool(types))
