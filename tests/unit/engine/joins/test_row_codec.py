"""Rows as bytes: every Arrow type is restored exactly, with nulls, from slices, and a row at a time."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from evenflow.engine.joins.row_codec import RowCodec

COUNT = 200


def column(make, kind=None):
    random = Random(COUNT)
    return pa.array([None if random.random() < 0.2 else make(random) for _ in range(COUNT)], kind)


def text(random):
    return "é" * random.randrange(9)


WORDS = column(lambda random: random.choice("abc"))
COLUMNS = {
    "int8": column(lambda random: random.randrange(-100, 100), pa.int8()),
    "uint64": column(lambda random: random.randrange(2**64), pa.uint64()),
    "bool": column(lambda random: random.random() < 0.5),
    "float16": column(lambda random: np.float16(random.random()), pa.float16()),
    "double": column(Random.random),
    "string": column(text),
    "large_string": column(text, pa.large_string()),
    "string_view": column(text, pa.string_view()),
    "binary": column(lambda random: random.randbytes(random.randrange(20))),
    "binary_view": column(lambda random: random.randbytes(random.randrange(20)), pa.binary_view()),
    "binary_of_3": column(lambda random: random.randbytes(3), pa.binary(3)),
    "decimal128": column(lambda random: Decimal(random.randrange(10**9)) / 100, pa.decimal128(20, 2)),
    "decimal256": column(lambda random: Decimal(random.randrange(10**9)) / 100, pa.decimal256(50, 2)),
    "timestamp": column(lambda random: random.randrange(10**9), pa.timestamp("ns", "UTC")),
    "date": column(lambda random: random.randrange(10**4), pa.date32()),
    "duration": column(lambda random: random.randrange(10**4), pa.duration("s")),
    "null": pa.nulls(COUNT),
    "dictionary": WORDS.dictionary_encode(),
    "small_dictionary": WORDS.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "list": column(lambda random: [1] * random.randrange(3), pa.list_(pa.int64())),
    "struct": column(lambda random: {"a": random.randrange(5), "b": ["x"]}),
    "map": column(lambda random: [("a", random.randrange(5))], pa.map_(pa.string(), pa.int64())),
    "interval": column(lambda random: pa.MonthDayNano([random.randrange(9), 2, 3]), pa.month_day_nano_interval()),
}
ALL = pa.record_batch(COLUMNS)


@pytest.mark.parametrize(
    "rows",
    [*(ALL.select([name]) for name in COLUMNS), ALL, ALL.slice(3, 50), ALL.slice(7, 1), ALL.select(["int8", "string", "binary"]).slice(5)],
    ids=[*COLUMNS, "all", "slice", "row", "three"],
)
def test_rows_come_back_as_they_were(rows):
    codec = RowCodec(rows.schema)
    packed = codec.pack(rows)
    back = codec.unpack(packed)
    back.validate(full=True)
    assert back.schema == rows.schema
    assert back.to_pylist() == rows.to_pylist()
    assert codec.unpack(packed[:1]).to_pylist() == rows.slice(0, 1).to_pylist()
