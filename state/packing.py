"""Packs users' values as msgpack, so that each is restored equal and with the same type. Unpacking never runs code.

>>> unpack_value(pack_value({"n": (1, 2.5), "seen": {3}}))
{'n': (1, 2.5), 'seen': {3}}
>>> first_foreign([1, {"deep": [bytearray(b"x")]}]), problem_of({"deep": [bytearray(b"x")]}, "state")
(1, "`state['deep'][0]` is a bytearray: store bytes(...)")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import InvalidOperation
from itertools import chain, islice
from typing import Any

import msgpack

from .packed_types import CONTAINERS, KNOWN, PLAIN, UNORDERED, ZONED, has_known_zone, packed, refusal, unpacked

DEEPEST = 100
"""The most containers inside one another."""

MOST = 1 << 22
"""The most parts examined at one depth of values, so that values that share parts can't make it endless."""


def pack_value(value: Any) -> bytes:
    """Pack a value made of the types in `packed_types.KNOWN`.

    Raises TypeError, ValueError or OverflowError for anything else, at any depth.
    """
    data: bytes = msgpack.packb(value, strict_types=True, default=_extension, unicode_errors="surrogatepass")
    return data


def pack_values(values: Iterable[Any]) -> Iterator[bytes]:
    """Pack many values like `pack_value`, in a quarter of the time. Raises the same errors, at the first value that can't be
    packed.
    """
    return map(msgpack.Packer(strict_types=True, default=_extension, unicode_errors="surrogatepass").pack, values)


def unpack_value(data: bytes) -> Any:
    """Unpack the result of `pack_value`. Raises ValueError, TypeError or msgpack.UnpackException for other bytes."""
    return msgpack.unpackb(data, strict_map_key=False, ext_hook=_from_extension, unicode_errors="surrogatepass")


def unpack_values(packed: Sequence[bytes]) -> list[Any]:
    """Unpack many values like `unpack_value`, in a quarter of the time. Raises the same errors.

    >>> unpack_values(list(pack_values([(1, 2), None, "a"])))
    [(1, 2), None, 'a']
    """
    if not packed:
        return []
    header: bytes = msgpack.Packer().pack_array_header(len(packed))
    values: list[Any] = unpack_value(header + b"".join(packed))  # one array of all of them
    return values


def first_foreign(values: Sequence[Any], most: int = MOST, turn: int = 0) -> int | None:
    """Return the place of the first value with a part of an unpackable type; None if none was found.

    `most`: the number of parts examined at each depth, the latest ones first. `turn`: another number examines other parts.
    """
    if _known(values, most, turn):
        return None
    return next((place for place, value in enumerate(values) if not _known([value])), None)


def _known(values: Sequence[Any], most: int = MOST, turn: int = 0) -> bool:
    """Return True if all types in `values` can be packed, at any depth. Examines all parts of one depth together."""
    for _ in range(DEEPEST):
        kinds = set(map(type, values))
        deep = kinds - PLAIN
        if not deep:
            return True
        if not deep <= KNOWN:
            return False
        if not deep.isdisjoint(ZONED) and not all(has_known_zone(value) for value in values if type(value) in ZONED):
            return False
        parts: list[Iterable[Any]] = []
        for kind in deep & CONTAINERS:
            these: Sequence[Any] = values if len(kinds) == 1 else [value for value in values if type(value) is kind]
            if turn:
                these = [*these[turn % len(these) :], *these[: turn % len(these)]]
            if kind is dict:
                parts.append(chain.from_iterable(map(reversed, map(dict.values, these))))
            parts.append(chain.from_iterable(these if kind in UNORDERED else map(reversed, these)))
        values = list(islice(chain.from_iterable(parts), most))
        if not values:
            return True
    return False


def problem_of(value: Any, name: str) -> str:
    """Return which part of a value has a type that can't be packed, and its place; `name`: the name of the value."""
    path, depth = name, 0
    while True:
        if type(value) not in KNOWN:
            return f"`{path}` is {refusal(value)}"
        if type(value) in ZONED and not has_known_zone(value):
            kind = type(value.tzinfo)
            return f"`{path}` has a time zone of {kind.__module__}.{kind.__name__}: use datetime.timezone or zoneinfo.ZoneInfo"
        inner: list[tuple[str, Any]] = []
        if type(value) is dict:
            inner = [(f"{path}[{key!r:.50}]", part) for key, part in value.items()] + [(f"a key of {path}", key) for key in value]
        elif type(value) in CONTAINERS:
            inner = [(f"{path}[{place}]", part) for place, part in enumerate(value)]
        found = next(((where, part) for where, part in inner if not _known([part])), None)
        depth += 1
        if found is None:
            return f"`{name}` can't be packed"
        if depth > DEEPEST:
            return f"`{name}` has more than {DEEPEST} containers inside one another"
        path, value = found


def _extension(value: Any) -> Any:
    """Pack a value of a type that msgpack lacks."""
    return msgpack.ExtType(*packed(value, pack_value))


def _from_extension(code: int, data: bytes) -> Any:
    try:
        return unpacked(code, data, unpack_value)
    except (OverflowError, InvalidOperation, KeyError) as error:
        raise ValueError(f"extension {code} is not valid: {error!r}") from error
