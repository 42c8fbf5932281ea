"""The arguments of a source of a table's changes: those that it needs, and those that have no meaning for it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ....engine.errors import FlowError
from ....engine.table_changes import RESERVED
from .topics import Topics

PLACES = ("partition", "offset")
"""The metadata of a record that tells which change of a key is the newest."""


def table_key(given: str | Sequence[str], format: str, operator: str) -> tuple[str, ...]:  # noqa: A002 -- as in read_kafka
    """Return the columns of the primary key, none for records that aren't the changes of a table. Raises FlowError for other columns."""
    key = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else (given,)
    if format != "debezium":
        if key:
            raise FlowError(f'operator `{operator}`: key= is for format="debezium", and this is format={format!r}')
        return ()
    if not key or not all(isinstance(name, str) and name for name in key) or len(set(key)) < len(key):
        raise FlowError(
            f'operator `{operator}`: format="debezium" needs key=, the columns of the table\'s primary key, for example key="id"; '
            f"got {given!r:.200}"
        )
    return key


def check_table(topics: Topics, event_time: str | None, columns: Sequence[str], operator: str) -> None:
    """Raise FlowError for arguments that don't fit the changes of a table."""
    what = f'operator `{operator}`: format="debezium"'
    if len(topics.names) > 1:
        raise FlowError(
            f"{what} reads one topic, and here are {', '.join(topics.names)}: read each with a read_kafka of its own, then .union()"
        )
    if event_time is not None:
        raise FlowError(f"{what} has no event_time=: rows are replaced and deleted, so windows can't take them; see .changelog()")
    if columns:
        raise FlowError(f"{what} has no columns=: a row of a table comes from all changes of its key, not from one record")


def table_columns(given: pa.Schema | None, key: tuple[str, ...], operator: str) -> pa.Schema | None:
    """Return the columns that the user gave. Raises FlowError for columns that a table can't have."""
    if given is None:
        return None
    for name in key:
        if name not in given.names:
            raise FlowError(f"operator `{operator}`: schema= has no column `{name}`, which is in key=; it has {', '.join(given.names)}")
    for field in given:
        if field.name.startswith(RESERVED):
            raise FlowError(f"operator `{operator}`: schema= has a column `{field.name}`: names that begin with {RESERVED} are taken")
        if pa.types.is_nested(field.type):
            raise FlowError(
                f"operator `{operator}`: schema= has the column `{field.name}` of type {field.type}: columns of a table can't be nested"
            )
    return given
