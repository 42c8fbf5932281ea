"""Reads of the state of one key, between two batches, for a coordinator that can only guess which worker has it.

Invariant: a value is that of a worker which has all state of the key. In a migration that is the old owner up to its implicit
barrier, and the new owner once the state has arrived; between the two, no worker answers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from ..errors import RecordError
from ..keys.typed_key import typed_key
from ..operators.keyed import KeyedInstance
from ..protocol.effects import StateRead
from ..protocol.ids import StepVersion
from .handover import Handovers


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
