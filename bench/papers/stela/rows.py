"""The functions of the operators of Stela's topologies, which depend on the row alone.

>>> row = parsed({"seq": 7, "key": 3})
>>> row["text"], cut(row)["text"], passes(row), passes_again(row)
('line 7 of 3', 'line 7 o', True, True)
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def parsed(line: Row) -> Row:
    """Convert a line of a source to a row."""
    return {"number": line["seq"], "id": line["key"], "text": f"line {line['seq']} of {line['key']}"}


def same(row: Row) -> Row:
    """Return the row unchanged: the operator only waits."""
    return row


def cut(row: Row) -> Row:
    """Cut the text to 80 %."""
    return {**row, "text": row["text"][: len(row["text"]) * 4 // 5]}


def appended(row: Row) -> Row:
    """Append the row's number to the text."""
    return {**row, "text": f"{row['text']}+{row['number']}"}


def passes(row: Row) -> bool:
    """Return True for four of five rows."""
    return bool(row["number"] % 5 != 0)


def passes_again(row: Row) -> bool:
    """Return True for four of five rows, independently of the first filter."""
    return bool(row["number"] // 5 % 5 != 0)


def failed(row: Row) -> bool:
    """Return True for every second row: its line reports a failure."""
    return bool(row["number"] % 2 == 0)


def succeeded(row: Row) -> bool:
    """Return True for the other rows."""
    return not failed(row)


def is_even_count(row: Row) -> bool:
    """Return True for every second counted row of an id."""
    return bool(row["count"] % 2 == 0)


def counted(row: Row, count: int) -> Row:
    """Return the row as the `count`-th of its id. Which row that is depends on the order, so only id and count remain."""
    return {"id": row["id"], "count": count, "text": f"{row['id']}: {count}"}
