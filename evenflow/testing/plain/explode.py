"""`explode`, row by row in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

from ...engine.operators.rows.explode import Explode
from .oracle import Record, Records, Row, evaluate


@evaluate.register
def _(operator: Explode, inputs: Sequence[Records]) -> Records:
    return Records([Record(row, record.time) for record in inputs[0].items for row in _exploded(record.row, operator)])


def _exploded(row: Row, operator: Explode) -> list[Row]:
    rows = []
    for number, element in enumerate(row[operator.column] or (), 1):
        rest = {name: value for name, value in row.items() if name != operator.column}
        numbered = {} if operator.position is None else {operator.position: number}
        rows.append(rest | numbered | (element if isinstance(element, dict) else {operator.column: element}))
    return rows
