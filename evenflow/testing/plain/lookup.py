"""`lookup`, row by row: teaches the oracle the operator."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...engine.operators.joins.lookup import Lookup
from ...engine.source import Source
from .oracle import Record, Records, evaluate, key_of, read


@evaluate.register
def _(operator: Lookup, inputs: Sequence[Records]) -> Records:
    if isinstance(operator.table, Source):
        table = [record.row for record in read(operator.table).items]
        names = list(table[0])
    else:
        whole = operator.table if isinstance(operator.table, pa.Table) else operator.table()
        table, names = whole.to_pylist(), whole.column_names
    keys = tuple(operator.on.values())
    added = operator.columns if operator.columns is not None else [name for name in names if name not in keys]
    items = list[Record]()
    for record in inputs[0].items:
        key = key_of(record.row, operator.on)
        matches = [row for row in table if key_of(row, keys) == key and None not in key]
        if not matches and operator.how == "left":
            matches = [dict.fromkeys(names)]
        renamed = {name: name + operator.suffix if name in record.row else name for name in added}
        items += [Record({**record.row, **{new: row[old] for old, new in renamed.items()}}, record.time) for row in matches]
    return Records(items)
