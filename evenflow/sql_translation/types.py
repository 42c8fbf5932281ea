"""The types of SQL as Arrow types.

>>> from sqlglot import exp
>>> arrow_type(exp.DataType.build("DECIMAL(10, 2)")), arrow_type(exp.DataType.build("BIGINT"))
(Decimal128Type(decimal128(10, 2)), DataType(int64))
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from .refusals import refusal

_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPLTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}


def arrow_type(kind: exp.DataType) -> pa.DataType:
    """Return the Arrow type of a type in SQL. Raises FlowError for one that isn't supported."""
    name = kind.this.name
    if name == "DECIMAL":
        digits = [int(part.name) for part in kind.expressions] or [10]
        return pa.decimal128(digits[0], digits[1] if len(digits) > 1 else 0)
    if name == "ARRAY" and len(kind.expressions) == 1:
        return pa.list_(arrow_type(kind.expressions[0]))
    if name == "STRUCT":
        return pa.struct([(part.name, arrow_type(part.args["kind"])) for part in kind.expressions])
    found = _TYPES.get(name)
    if found is None:
        raise refusal(kind, f"the type is unknown; there are: {', '.join([*_TYPES, 'DECIMAL(p, s)', 'ARRAY<t>', 'ROW<name t>'])}")
    return found
