"""A merge of few values into many adds exactly the missing ones, for every type."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch

NUMBERS = [*range(-30, 60)]
TYPES = {
    pa.int64(): NUMBERS,
    pa.uint8(): NUMBERS,
    pa.float64(): [*(n / 8 for n in NUMBERS), float("nan"), -0.0],
    pa.float32(): [*(n / 8 for n in NUMBERS), float("nan"), -0.0],
    pa.decimal128(12, 3): [Decimal(n) / 8 for n in NUMBERS],
    pa.string(): [str(n) for n in NUMBERS],
    pa.large_string(): [str(n) for n in NUMBERS],
    pa.binary(): [bytes([n % 256]) for n in NUMBERS],
    pa.binary(2): [bytes([n % 256, 0]) for n in NUMBERS],
    pa.bool_(): [True, False],
    pa.date32(): NUMBERS,
    pa.timestamp("us", "UTC"): NUMBERS,
    pa.time64("us"): [abs(n) for n in NUMBERS],
    pa.duration("ms"): NUMBERS,
}


def drawn(kind, random, n):
    pool = [value % 256 if kind == pa.uint8() else value for value in TYPES[kind]]
    values = [pool[place] if random.random() < 0.9 else None for place in random.integers(0, len(pool), n).tolist()]
    return pa.array(values, kind)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_merging_few_values_into_many_gives_the_counts_of_all(kind):
    random = np.random.default_rng(3)
    accumulator = ef.count_distinct("x").bind(pa.schema({"x": kind}), "op")
    pieces = [(drawn(kind, random, n), random.integers(0, 5, n)) for n in (400, 9, 400, 1, 0, 30, 7)]
    parts = accumulator.empty(5)
    for values, codes in pieces:
        parts = accumulator.merge(parts, accumulator.partial(Batch(pa.record_batch({"x": values})), codes, 5))
    values, codes = pa.concat_arrays([values for values, _ in pieces]), np.concatenate([codes for _, codes in pieces])
    assert accumulator.finish(parts).to_pylist() == accumulator.finish(
        accumulator.partial(Batch(pa.record_batch({"x": values})), codes, 5)
    ).to_pylist()  # fmt: skip
    assert accumulator.finish(parts).to_pylist() == [_distinct(values, codes == group) for group in range(5)]


def _distinct(values, where):
    """Return the values by their text, so that NaN equals itself; zero has no sign here."""
    return len(
        {repr(value + 0.0 if isinstance(value, float) else value) for value in values.filter(pa.array(where)).to_pylist()} - {"None"}
    )
