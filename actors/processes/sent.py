"""How a worker sends its coordinator what may have been made of records: as bytes, the only thing that Ray sends without additions.

Of anything else Ray's message has gaps: eight bytes after its first, and up to 64 at every array of numpy, which lies beside the pickle at
a rounded address. Ray doesn't clear them, so what had lain in that memory, such as parts of records, would cross the network readably.

>>> received(sent("count-0", 3))
('count-0', 3)

Ray puts a large argument into its object store and forgets it once the actor has been made, so it could not make the actor again. Arguments
for an actor that shall come back are sent in pieces that are small enough to travel, and stay, in Ray's own record of it.

>>> pieces = in_pieces(sent("plan", b"x" * 200_000))
>>> len(pieces), received(b"".join(pieces))[0]
(4, 'plan')
"""

from __future__ import annotations

import pickle
from typing import Any

from ray import cloudpickle

_dumps: Any = cloudpickle.dumps

PIECE = 64 << 10
"""Bytes of a piece. Ray keeps arguments of up to 100 kB, and 10 MB of them together (`max_direct_call_object_size`)."""


def sent(*arguments: Any) -> bytes:
    """The arguments of a call, as the one argument that it gets."""
    packed: bytes = _dumps(arguments)
    return packed


def received(packed: bytes) -> tuple[Any, ...]:
    """What `sent` was given."""
    arguments: tuple[Any, ...] = pickle.loads(packed)  # noqa: S301 -- Ray brings it, and unpickles every other argument itself
    return arguments


def in_pieces(packed: bytes) -> list[bytes]:
    """What `sent` gave, as arguments none of which is large."""
    return [packed[first : first + PIECE] for first in range(0, len(packed), PIECE)]
