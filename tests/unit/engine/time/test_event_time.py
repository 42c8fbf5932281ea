"""Conversion of a column to microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.time.event_time import EARLIEST, LATEST, EventTime

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


def test_milliseconds_of_a_date_count():
    column = pa.array([86_400_001, -1], pa.int64()).view(pa.date64())
    assert EventTime("ts").extract(pa.record_batch({"ts": column}), "read").tolist() == [86_400_001_000, -1_000]


def test_a_missing_column_is_refused_with_the_names_of_all():
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


@pytest.mark.parametrize(
    ("column", "unit", "fits"),
    [
        pytest.param(pa.array([253_402_300_799_999]), "ms", True, id="the last millisecond of 9999"),
        pytest.param(pa.array([253_402_300_800_000]), "ms", False, id="the first of 10000"),
        pytest.param(pa.array([-62_135_596_800]), "s", True, id="the first second of the year 1"),
        pytest.param(pa.array([2**62]), "ms", False, id="beyond 64 bits in microseconds"),
        pytest.param(pa.array([2**63 + 1], pa.uint64()), "ns", True, id="unsigned, beyond what is signed"),
        pytest.param(pa.array([2**64 - 1], pa.uint64()), "us", False, id="unsigned, beyond 9999"),
        pytest.param(pa.array([2**62]).view(pa.timestamp("s")), "ms", False, id="a timestamp of seconds"),
        pytest.param(pa.array([2**63 - 1]).view(pa.timestamp("ns")), "ms", True, id="any timestamp of nanoseconds"),
        pytest.param(pa.array([2**31 - 1], pa.int32()).view(pa.date32()), "ms", False, id="a date"),
    ],
)
def test_time_is_followed_or_refused_and_never_another(column, unit, fits):
    event_time, rows = EventTime("ts", unit), pa.record_batch({"ts": column})
    assert event_time.fits(column) is fits
    if fits:
        assert EARLIEST <= event_time.extract(rows, "read")[0] <= LATEST
    else:
        with pytest.raises(ConnectorError, match=r"operator `read`: event time column `ts` is -?\d+ .* outside of the years 1 to 9999"):
            event_time.extract(rows, "read")
