"""Looks of a page at the state of a running job: the value of a key, and the first rows of an operator's table.

They change nothing, so that a read-only page has them too. Values are sent as texts, which the page shows as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ..building.requests import checked_key, parse_key
from ..engine.errors import RequestError
from ..reads import as_json, read_key, read_table
from ..scheduler.protocol.requests import Responder
from .queries import Answer

FIRST = 50
"""The rows of a table that are shown."""

LONGEST = 500
"""The characters of a value that are shown."""

TIMEOUT = "20s"
"""The wait for the worker that has a key; the page waits longer for the answer."""


@dataclass(frozen=True, slots=True)
class KeyLook:
    """A look at the value of a key."""

    operator: str
    key: Hashable


@dataclass(frozen=True, slots=True)
class TableLook:
    """A look at the first rows of the table of an operator."""

    operator: str


Look = KeyLook | TableLook

PATHS = ("key", "rows")
"""The paths of the requests."""


def look_of(path: str, query: Mapping[str, str]) -> Look:
    """Parse a request. Raises RequestError, naming the field, if one is missing or no key."""
    operator = query.get("operator", "")
    if not operator:
        raise RequestError("operator is missing")
    if path == "rows":
        return TableLook(operator)
    if "key" not in query:
        raise RequestError("key is missing")
    return KeyLook(operator, checked_key(parse_key(query["key"])))


def looked(job: Responder, name: str, look: Look) -> Answer:
    """Carry a look out. Raises the errors of `Job.read` and `Job.table`."""
    if isinstance(look, KeyLook):
        return {"value": shown(read_key(job, name, look.operator, look.key, TIMEOUT))}
    table = read_table(job, name, look.operator, FIRST)
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    return {
        "columns": [f"{field.name}: {field.type}" for field in table.schema],
        "rows": [[shown(value) for value in row.values()] for row in table.to_pylist()],
        **metadata,
    }


def shown(value: Any) -> str:
    """Return a value as a text of a bounded length.

    >>> shown({"n": 1}), len(shown("a" * 1_000))
    ('{"n": 1}', 501)
    """
    text = as_json(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
