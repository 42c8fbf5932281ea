"""Packing of arguments that may contain parts of records: as bytes, the only values that Ray sends without additions.

For other values Ray's message has gaps: eight bytes after its first, and up to 64 at every numpy array, which is stored next to
the pickle at a rounded address. Ray doesn't clear them, so earlier content of that memory, such as parts of records, would cross
the network in plain text.

>>> unpack_call(pack_call("count-0", 3))
('count-0', 3)

Ray puts a large argument into its object store and forgets it once the actor has been made, so it could not make the actor again.
Arguments for an actor that can be restarted are sent in pieces that are small enough to travel, and stay, in Ray's own record of
it.

>>> pieces = in_pieces(pack_call("plan", b"x" * 200_000))
>>> len(pieces), unpack_call(b"".join(pieces))[0]
(4, 'plan')
"""

from __future__ import annotations

import pickle
from typing import Any

from ray import cloudpickle

_dumps: Any = cloudpickle.dumps

PIECE = 64 << 10
"""The bytes of a piece. Ray keeps arguments of up to 100 kB, and 10 MB of them together (`max_direct_call_object_size`)."""


def pack_call(*arguments: Any) -> bytes:
    """Pack the arguments of a call into one argument."""
    packed: bytes = _dumps(arguments)
    return packed


def unpack_call(packed: bytes) -> tuple[Any, ...]:
    """Unpack the arguments of a call."""
    arguments: tuple[Any, ...] = pickle.loads(packed)  # noqa: S301 -- Ray brings it, and unpickles every other argument itself
    return arguments


def in_pieces(packed: bytes) -> list[bytes]:
    """Split packed arguments into small ones."""
    return [packed[first : first + PIECE] for first in range(0, len(packed), PIECE)]
