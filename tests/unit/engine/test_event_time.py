"""From a column to microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.event_time import EventTime

INSTANT = datetime(2013, 1, 1, 5, 0, tzinfo=UTC)
MICROS = 1_357_016_400_000_000


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array([INSTANT], pa.timestamp("us", tz="UTC")), id="UTC"),
        pytest.param(pa.array([INSTANT], pa.timestamp("ns", tz="America/New_York")), id="a zone is a way to write the same instant"),
        pytest.param(pa.array([INSTANT.replace(tzinfo=None)], pa.timestamp("s")), id="no zone is UTC"),
        pytest.param(pa.array([INSTANT], pa.timestamp("ms", tz="UTC")), id="milliseconds"),
    ],
)
def test_timestamp_is_its_instant(column):
    assert EventTime("ts").extract(pa.record_batch({"ts": column}), "read").tolist() == [MICROS]


@pytest.mark.parametrize(("unit", "value"), [("s", 2), ("ms", 2_000), ("us", 2_000_000), ("ns", 2_000_000_999)])
def test_integer_counts_in_its_unit(unit, value):
    assert EventTime("ts", unit).extract(pa.record_batch({"ts": [value]}), "read").tolist() == [2_000_000]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_date_is_its_midnight(kind):
    assert EventTime("ts").extract(pa.record_batch({"ts": pa.array([date(1970, 1, 2)], kind)}), "read").tolist() == [86_400_000_000]


def test_missing_column_is_answered_with_those_there_are():
    with pytest.raises(ConnectorError, match="operator `read`: no event time column `ts`; there are: a, b"):
        EventTime("ts").extract(pa.record_batch({"a": [1], "b": [2]}), "read")


def test_text_is_no_event_time():
    with pytest.raises(ConnectorError, match="operator `read`: event time column `ts` is string; expected a timestamp"):
        EventTime("ts").extract(pa.record_batch({"ts": ["2013-01-01"]}), "read")


def test_null_shows_its_row():
    with pytest.raises(ConnectorError, match=r"`ts` is null in row \{'ts': None, 'a': 2\}; filter such rows out"):
        EventTime("ts").extract(pa.record_batch({"ts": [1, None], "a": [1, 2]}), "read")


def test_unknown_unit_is_refused():
    with pytest.raises(FlowError, match="unit 'h' is unknown"):
        EventTime("ts", "h")
