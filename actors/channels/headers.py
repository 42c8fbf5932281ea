r"""The header of a message: a short msgpack array, read without trusting a byte of it.

Reading any bytes allocates no more than the header's size, and returns a tuple or raises ProtocolError.

>>> unpack(pack((3, 7, 0, 12)))
(3, 7, 0, 12)
>>> unpack(b"\xc1")
Traceback (most recent call last):
    ...
evenflow.engine.errors.ProtocolError: a header of 1 bytes is not msgpack: FormatError
"""

from __future__ import annotations

from typing import Any

import msgpack

from ...engine.errors import ProtocolError

MAX_HEADER_BYTES = 4096
"""Longer headers are rejected unread: a header has a few numbers, data goes into separate frames."""

MAX_NUMBER = 2**63 - 1
"""The largest number in a header, so that every number fits an int64."""

_MALFORMED = (ValueError, TypeError, OverflowError, msgpack.UnpackException)


def pack(fields: tuple[Any, ...]) -> bytes:
    """Pack fields (numbers, short texts, tuples of them) to a header."""
    header: bytes = msgpack.packb(fields)
    return header


def unpack(frame: bytes) -> tuple[Any, ...]:
    """Unpack the fields of a header. Raises ProtocolError for anything that is not one short msgpack array."""
    if len(frame) > MAX_HEADER_BYTES:
        raise ProtocolError(f"a header of {len(frame):,} bytes is longer than the allowed {MAX_HEADER_BYTES:,}")
    try:
        fields = msgpack.unpackb(frame, use_list=False)
    except _MALFORMED as error:
        raise ProtocolError(f"a header of {len(frame)} bytes is not msgpack: {type(error).__name__}") from error
    if type(fields) is not tuple:
        raise ProtocolError(f"a header must be an array, got {type(fields).__name__}")
    return fields


def number(value: Any, what: str, low: int = 0, high: int = MAX_NUMBER) -> int:
    """Return `value` if it is an int (no bool) between `low` and `high`. Raises ProtocolError that names `what`."""
    if type(value) is not int:
        raise ProtocolError(f"{what} must be an integer, got {type(value).__name__}")
    if not low <= value <= high:
        raise ProtocolError(f"{what} must be between {low} and {high}, got {value}")
    return value
