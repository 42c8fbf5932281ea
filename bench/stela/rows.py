"""What the operators of Stela's topologies do to a row: functions of the row alone.

>>> row = parsed({"seq": 7, "key": 3})
>>> row["text"], cut(row)["text"], passes(row), passes_again(row)
('line 7 of 3', 'line 7 o', True, True)
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def parsed(line: Row) -> Row:
    """A line that a source gave, as the row that the operators pass on."""
    return {"number": line["seq"], "id": line["key"], "text": f"line {line['seq']} of {line['key']}"}


def same(row: Row) -> Row:
    """The row unchanged: the operator only waits."""
    return row


def cut(row: Row) -> Row:
    """The text cut to 80 %."""
    return {**row, "text": row["text"][: len(row["text"]) * 4 // 5]}


def appended(row: Row) -> Row:
    """The text with the row's number behind it."""
    return {**row, "text": f"{row['text']}+{row['number']}"}


def passes(row: Row) -> bool:
    """Four of five rows."""
    return bool(row["number"] % 5 != 0)


def passes_again(row: Row) -> bool:
    """Four of five rows, whether they have passed the first filter or not."""
    return bool(row["number"] // 5 % 5 != 0)


def failed(row: Row) -> bool:
    """One of two rows: what the line reports is a failure."""
    return bool(row["number"] % 2 == 0)


def succeeded(row: Row) -> bool:
    """The other rows."""
    return not failed(row)


def is_even_count(row: Row) -> bool:
    """Every second of an id's counted rows."""
    return bool(row["count"] % 2 == 0)


def counted(row: Row, count: int) -> Row:
    """The row as the `count`-th of its id. Which row is the n-th depends on the order, so only id and count go on."""
    return {"id": row["id"], "count": count, "text": f"{row['id']}: {count}"}
