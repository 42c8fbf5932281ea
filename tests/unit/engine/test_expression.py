"""Arrow expressions on batches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.expression import columns_of, true_where

BATCH = Batch(pa.record_batch({"price": [24_170_000, 3, None]}))


def test_null_counts_as_false():
    assert true_where(pc.field("price") < 1_000_000, BATCH, "op").tolist() == [False, True, False]
    assert true_where(pc.field("price").cast("double") < 1e6, BATCH, "op").tolist() == [False, True, False]


def test_float_that_arrow_cannot_compare_with_large_integers_says_how_to_write_it():
    with pytest.raises(RecordError, match=r"where= \(price < 1000000\) fails: .* write 1_000_000"):
        true_where(pc.field("price") < 1e6, BATCH, "op", "where=")


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        (pc.field("a b") == "c", {"a b"}),
        (pc.field("it's") == pc.field("field_ref: 'x'"), {"it's", "field_ref: 'x'"}),
        (pc.if_else(pc.field("a") > 1, pc.field("b"), pc.scalar("c")) == pc.utf8_lower(pc.field("d")), {"a", "b", "d"}),
        (pc.scalar(1) == 1, set()),
        (pc.field("a", "b") == 1, {"a", "b"}),
        (pc.field(2) == 1, None),
        (pc.field("two\nlines") == 1, None),
    ],
    ids=str,
)
def test_columns_of_an_expression_or_that_they_are_unknown(expression, columns):
    assert columns_of(expression) == columns
