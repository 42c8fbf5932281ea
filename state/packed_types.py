"""Types that msgpack lacks, each as an extension with its own code, so that a value is restored equal and with the same type.

Only exact types count: an instance of a subclass would be restored as another type. Unpacking runs no user code. Numpy arrays and
Arrow's scalars are packed for states of a declared type alone, so they are not in `KNOWN`.

>>> unpacked(*packed(Decimal("1.50"), lambda text: text), lambda text: text)
Decimal('1.50')
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

PLAIN: frozenset[type] = frozenset((type(None), bool, int, float, str, bytes))
"""Types without parts whose every value can be packed."""

UNORDERED: frozenset[type] = frozenset((set, frozenset))

CONTAINERS: frozenset[type] = UNORDERED | {list, tuple, dict}

ZONED: frozenset[type] = frozenset((datetime, time))
"""Types whose values can be packed if their time zone can."""

NUMPY: frozenset[type] = frozenset(np.dtype(code).type for code in "?bBhHiIlLefdFDmM")
"""Numpy's scalars that have one type for each `dtype.str`."""

KNOWN = PLAIN | CONTAINERS | ZONED | NUMPY | frozenset((date, timedelta, Decimal, UUID))
"""All types that can be packed."""

MADE_OF = (
    "None, bool, int, float, str, bytes, lists, tuples, dicts, sets, frozensets, datetime, date, time, timedelta, Decimal, UUID and "
    "numpy's scalars"
)
"""The same types for error messages."""

SCALARS: frozenset[type] = frozenset(kind for kind in vars(pa).values() if isinstance(kind, type) and issubclass(kind, pa.Scalar))
"""Arrow's scalars: a class for each kind of type."""

Pack: TypeAlias = Callable[[Any], Any]


def packable_dtype(dtype: np.dtype[Any]) -> bool:
    """Return True for the type of an array that is restored with the same type: not for objects, nor for several fields.

    >>> packable_dtype(np.dtype(">i4")), packable_dtype(np.dtype([("a", "i4")])), packable_dtype(np.dtype(object))
    (True, False, False)
    """
    return not dtype.hasobject and dtype.names is None and dtype.subdtype is None


def _array(value: Any) -> list[Any]:
    if not packable_dtype(value.dtype):
        raise TypeError(f"an array of {value.dtype}: store an array of numbers, times or texts of fixed length")
    return [value.dtype.str, list(value.shape), value.tobytes()]


def _ipc(value: Any) -> bytes:
    batch, written = pa.record_batch([pa.repeat(value, 1)], names=["value"]), pa.BufferOutputStream()
    with pa.ipc.new_stream(written, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = written.getvalue().to_pybytes()
    return content


_PACKED: dict[type, tuple[int, Callable[[Any, Pack], Any]]] = {
    tuple: (1, lambda value, pack: pack(list(value))),
    set: (2, lambda value, pack: pack(sorted(map(pack, value)))),  # sorted, so that equal sets have equal bytes
    frozenset: (3, lambda value, pack: pack(sorted(map(pack, value)))),
    int: (4, lambda value, pack: value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)),  # msgpack has those of 64 bits
    Decimal: (5, lambda value, pack: pack(str(value))),
    UUID: (6, lambda value, pack: value.bytes),
    date: (7, lambda value, pack: pack(value.toordinal())),
    time: (8, lambda value, pack: pack([*_clock(value), value.fold, _zone(value.tzinfo)])),
    datetime: (9, lambda value, pack: pack([value.year, value.month, value.day, *_clock(value), value.fold, _zone(value.tzinfo)])),
    timedelta: (10, lambda value, pack: pack([value.days, value.seconds, value.microseconds])),
    **dict.fromkeys(NUMPY, (11, lambda value, pack: pack([value.dtype.str, value.tobytes()]))),
    np.ndarray: (12, lambda value, pack: pack(_array(value))),
    **dict.fromkeys(SCALARS, (13, lambda value, pack: _ipc(value))),
}


def packed(value: Any, pack: Pack) -> tuple[int, Any]:
    """Return the code of the value's type, and the packed value. Raises TypeError, naming the type, if it has no code."""
    if type(value) not in _PACKED:
        raise TypeError(refusal(value))
    code, content = _PACKED[type(value)]
    return code, content(value, pack)


def _clock(value: datetime | time) -> list[int]:
    return [value.hour, value.minute, value.second, value.microsecond]


def _time(parts: Any) -> time:
    hour, minute, second, microsecond, fold, zone = parts
    return time(hour, minute, second, microsecond, _as_zone(zone), fold=fold)


def _datetime(parts: Any) -> datetime:
    year, month, day, hour, minute, second, microsecond, fold, zone = parts
    return datetime(year, month, day, hour, minute, second, microsecond, _as_zone(zone), fold=fold)


_UNPACKED: dict[int, Callable[[Any, Pack], Any]] = {
    1: lambda data, unpack: tuple(unpack(data)),
    2: lambda data, unpack: set(map(unpack, unpack(data))),
    3: lambda data, unpack: frozenset(map(unpack, unpack(data))),
    4: lambda data, unpack: int.from_bytes(data, "little", signed=True),
    5: lambda data, unpack: Decimal(unpack(data)),
    6: lambda data, unpack: UUID(bytes=data),
    7: lambda data, unpack: date.fromordinal(unpack(data)),
    8: lambda data, unpack: _time(unpack(data)),
    9: lambda data, unpack: _datetime(unpack(data)),
    10: lambda data, unpack: timedelta(*unpack(data)),
    11: lambda data, unpack: _scalar(*unpack(data)),
    12: lambda data, unpack: _as_array(*unpack(data)),
    13: lambda data, unpack: pa.ipc.open_stream(data).read_next_batch().column(0)[0],
}


def unpacked(code: int, data: Any, unpack: Pack) -> Any:
    """Return the unpacked value; the inverse of `packed`. Raises ValueError or TypeError for anything else."""
    if code not in _UNPACKED:
        raise ValueError(f"unknown extension {code}")
    return _UNPACKED[code](data, unpack)


def _scalar(kind: str, content: bytes) -> Any:
    return np.frombuffer(content, np.dtype(kind))[0]


def _as_array(kind: str, shape: list[int], content: bytes) -> Any:
    return np.frombuffer(content, np.dtype(kind)).reshape(shape).copy()  # one that can be changed


def has_known_zone(value: Any) -> bool:
    """Return True if a datetime's or time's zone can be packed."""
    zone = value.tzinfo
    return zone is None or type(zone) is timezone or (type(zone) is ZoneInfo and zone.key is not None)


def _zone(zone: Any) -> Any:
    if zone is None:
        return None
    if type(zone) is ZoneInfo and zone.key is not None:
        return zone.key
    if type(zone) is timezone:
        name = zone.__getinitargs__()[1:] if zone is not UTC else ()  # type: ignore[attr-defined]  # the protocol by which it is copied
        offset = zone.utcoffset(None)
        return [offset.days, offset.seconds, offset.microseconds, *name]
    raise TypeError(f"a time zone of {type(zone).__module__}.{type(zone).__name__}: use datetime.timezone or zoneinfo.ZoneInfo")


def _as_zone(packed_zone: Any) -> timezone | ZoneInfo | None:
    if packed_zone is None:
        return None
    if isinstance(packed_zone, str):
        return ZoneInfo(packed_zone)
    days, seconds, microseconds, *name = packed_zone
    return timezone(timedelta(days, seconds, microseconds), *name)


def refusal(value: Any) -> str:
    """Return the type of a value that can't be packed, and an alternative.

    >>> refusal(bytearray(b"x"))
    'a bytearray: store bytes(...)'
    """
    kind = type(value)
    return f"a {kind.__qualname__}: store {_instead(value, kind)}"


def _instead(value: Any, kind: type) -> str:
    if isinstance(value, enum.Enum):
        return "its .value"
    if dataclasses.is_dataclass(value):
        return "dataclasses.asdict(...)"
    if isinstance(value, tuple):
        return "tuple(...), or a dict by _asdict()"
    if isinstance(value, np.ndarray):
        return ".tolist()"
    if isinstance(value, (np.generic, pa.Scalar)):
        return ".item()" if isinstance(value, np.generic) else ".as_py()"
    if isinstance(value, datetime):
        return ".to_pydatetime()" if hasattr(value, "to_pydatetime") else "a plain datetime"
    if isinstance(value, (bytearray, memoryview)):
        return "bytes(...)"
    if callable(getattr(value, "model_dump", None)):
        return "model_dump()"
    bases: Iterable[type] = (dict, list, set, frozenset, bool, int, float, str, bytes, Decimal)
    plain = next((base.__name__ for base in bases if isinstance(value, base)), None)
    if plain is not None:
        return f"{plain}(...), because it would be restored as a {plain}"
    return "list(...)" if kind.__name__ == "deque" else "a value, or a dict of values, of these types"
