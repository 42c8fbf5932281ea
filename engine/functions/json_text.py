r"""JSON text of any value of a row, for people and programs that read dead letters.

Times are ISO 8601, bytes hexadecimal; other values that JSON lacks become their Python text.

>>> from datetime import date
>>> json_text({"day": date(2026, 1, 31), "raw": b"\xff", "n": None})
'{"day": "2026-01-31", "raw": "ff", "n": null}'
"""

from __future__ import annotations

import json
from datetime import date, datetime, time
from typing import Any


def json_text(value: Any) -> str:
    """Return `value` as JSON. NaN and infinity become strings, because JSON has no such numbers."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and value - value != 0 else value
