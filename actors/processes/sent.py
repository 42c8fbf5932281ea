"""How a worker sends its coordinator what may have been made of records: as bytes, the only thing that Ray sends without additions.

Of anything else Ray's message has gaps: eight bytes after its first, and up to 64 at every array of numpy, which lies beside the pickle at
a rounded address. Ray doesn't clear them, so what had lain in that memory, such as parts of records, would cross the network readably.

>>> received(sent("count-0", 3))
('count-0', 3)
"""

from __future__ import annotations

import pickle
from typing import Any

from ray import cloudpickle

_dumps: Any = cloudpickle.dumps


def sent(*arguments: Any) -> bytes:
    """The arguments of a call, as the one argument that it gets."""
    packed: bytes = _dumps(arguments)
    return packed


def received(packed: bytes) -> tuple[Any, ...]:
    """What `sent` was given."""
    arguments: tuple[Any, ...] = pickle.loads(packed)  # noqa: S301 -- Ray brings it, and unpickles every other argument itself
    return arguments
