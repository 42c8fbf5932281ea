from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.csv_sink import write_csv
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError

COLUMNS = {
    "text": pa.array(['a,"b"\nc', "", None]),
    "whole": pa.array([1, None, 3]),
    "real": pa.array([0.1, None, float("inf")]),
    "flag": pa.array([True, None, False]),
    "day": pa.array([date(2026, 1, 31), None, date(1969, 1, 1)]),
    "at": pa.array([datetime(2026, 1, 31, 10, 0, 0, 5, tzinfo=UTC), None, datetime(2026, 1, 1, tzinfo=UTC)]),
    "price": pa.array([Decimal("1.50"), None, Decimal("2.00")]),
}


def test_rows_that_were_written_are_read_back(tmp_path):
    sink = write_csv(tmp_path, delimiter=";")
    sink.start()
    writer = sink.writer(0, 1)
    batch = pa.record_batch(COLUMNS)
    writer.write(Batch(batch))
    sink.commit(1, writer.prepare(1))
    source = read_csv(tmp_path, delimiter=";", schema=batch.schema)
    source.start()
    assert source.reader(0, 1).poll(10).rows.equals(batch)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([[1]]), "column `c` is list<.*CSV has no nested values"),
        (pa.array([{"a": 1}]), "column `c` is struct<.*CSV has no nested values"),
        (pa.array([b"x"]), "column `c` is binary: CSV has no bytes"),
        (pa.array([None], pa.month_day_nano_interval()), "CSV has no intervals"),
    ],
)
def test_a_type_that_csv_cannot_hold_is_named(tmp_path, values, message):
    writer = write_csv(tmp_path).writer(0, 1)
    with pytest.raises(ConnectorError, match=message):
        writer.write(Batch(pa.record_batch({"c": values})))
    writer.close()
