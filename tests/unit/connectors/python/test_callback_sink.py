from __future__ import annotations

import pyarrow as pa
import pytest

from evenflow.connectors.python.callback_sink import to_callback
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError


def test_it_is_called_for_each_row_in_order():
    seen = []
    writer = to_callback(seen.append).writer(0, 1)
    writer.write(Batch(pa.record_batch({"n": [1, 2]})))
    assert seen == [{"n": 1}, {"n": 2}]
    assert writer.prepare(1) == []


def test_an_error_of_the_callback_names_the_row():
    def divide(row):
        return 1 / row["n"]

    with pytest.raises(RecordError, match=r"operator `alert`: .*divide raised ZeroDivisionError: division by zero") as caught:
        to_callback(divide, name="alert").writer(0, 1).write(Batch(pa.record_batch({"n": [1, 0]})))
    assert caught.value.record == {"n": 0}


def test_it_promises_no_more_than_at_least_once():
    assert "at least once" in to_callback(print).guarantee
