"""Parsing of external JSON to an object of finite numbers.

Invariant: every text gives an object, or a SnapshotError with the reason in one line. NaN, Infinity (which Python's reader
accepts although JSON has no such numbers) and numbers beyond a float are rejected.

>>> object_of('{"workers": 2}', "the load snapshot", '{"workers": 4}')
{'workers': 2}
>>> object_of('{"workers": NaN}', "the load snapshot", '{"workers": 4}')
Traceback (most recent call last):
    ...
evenflow.engine.errors.SnapshotError: the load snapshot is not JSON: NaN is not a number
"""

from __future__ import annotations

import json
import math
import reprlib
from typing import Any

from ..engine.errors import SnapshotError

_MOST_DIGITS = 100


def object_of(text: str, what: str, example: str) -> dict[str, Any]:
    """Parse the object in `text`. Raises SnapshotError, with the name `what`, unless it is an object like `example`."""
    try:
        document = json.loads(text, parse_constant=_no_number, parse_float=_float, parse_int=_int)
    except RecursionError:
        raise SnapshotError(f"{what} is not JSON that can be read: its brackets are nested too deeply") from None
    except ValueError as error:
        raise SnapshotError(f"{what} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise SnapshotError(f"{what} must be an object: {example}")
    return document


def shown(value: Any) -> str:
    """Format a value for an error message: like `repr`, but long values are cut off.

    >>> shown(7), shown("JFK"), len(shown(10**99))
    ('7', "'JFK'", 40)
    """
    return _SHORT.repr(value)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(_cut(text))


def _int(text: str) -> int:
    return int(text) if len(text) <= _MOST_DIGITS else _no_number(f"{_cut(text)}, which has {len(text)} digits,")


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _SHORT.maxlong else f"{text[: _SHORT.maxlong]}..."


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200
