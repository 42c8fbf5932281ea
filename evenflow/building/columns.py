"""Checks column names, and follows a stream's key columns through projections.

>>> keys_after(("id", "day"), Project(rename={"id": "customer"}), "rename")
('customer', 'day')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.errors import FlowError
from ..engine.operators.rows.compute import Compute
from ..engine.operators.rows.project import Project


def check_columns(columns: tuple[Any, ...], method: str) -> tuple[str, ...]:
    """Return the columns. Raises FlowError if there is none, or one is not a name."""
    if not columns or not all(isinstance(name, str) for name in columns):
        raise FlowError(f"{method}{columns!r:.200}: give the names of columns, at least one")
    return columns


def listed_columns(columns: Any, method: str) -> tuple[str, ...]:
    """Return the columns of a list. Raises FlowError for anything but a list of names."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise FlowError(f"{method}(columns={columns!r:.200}): expected a list of column names")
    return check_columns(tuple(columns), f"{method}(columns=...)")


def merged(given: Any, named: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Merge columns given as a dict and by name. Raises FlowError for anything but a dict."""
    if given is not None and not isinstance(given, Mapping):
        raise FlowError(f"{method}({given!r:.200}): expected a dict from column names, or {method}(column=...)")
    return {**(given or {}), **named}


def keys_after(keys: tuple[str, ...], project: Project, method: str) -> tuple[str, ...]:
    """Return the names of the key columns after `project`. Raises FlowError if it drops one, or gives its name to another column."""
    kept = [key for key in keys if key not in project.drop and (project.select is None or key in project.select)]
    if len(kept) < len(keys):
        gone = ", ".join(key for key in keys if key not in kept)
        raise FlowError(
            f"{method}: the stream is keyed by {', '.join(keys)}, and {gone} would be gone: keep it, or call key_by behind {method}"
        )
    renamed = project.rename or {}
    names = tuple(renamed.get(key, key) for key in keys)
    for old, new in renamed.items():
        if old not in keys and new in names:
            raise FlowError(f"{method}: `{old}` would get the name `{new}` of a key column: rename that too, or choose another name")
    return names


def keys_with(keys: tuple[str, ...], compute: Compute, method: str) -> tuple[str, ...]:
    """Return the key columns, which `compute` keeps. Raises FlowError if it drops or replaces one."""
    replaced = next((key for key in keys if key in compute.computed), None)
    if replaced is not None:
        raise FlowError(f"{method}: `{replaced}` is a key column of the stream: choose another name, or call key_by behind {method}")
    return keys if compute.select is None else keys_after(keys, Project(select=compute.select), method)
