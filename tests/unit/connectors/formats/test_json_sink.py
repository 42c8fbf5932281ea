from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from evenflow.connectors.formats.json_sink import write_json
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError, RecordError


def written(folder, **columns):
    sink = write_json(folder)
    sink.start()
    with closing(sink.writer(0, 1)) as writer:
        writer.write(Batch(pa.record_batch(columns)))
        sink.commit(1, writer.prepare(1))
    return [json.loads(line) for file in sorted(folder.glob("part-*.json")) for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(pa.array([datetime(2026, 1, 31, 10, 0, 0, 5)]), "2026-01-31T10:00:00.000005", id="timestamp"),
        pytest.param(pa.array([1], pa.timestamp("ns")), "1970-01-01T00:00:00.000000001", id="nanoseconds"),
        pytest.param(
            pa.array([datetime(2026, 1, 31, 10, tzinfo=timezone(timedelta(hours=2)))], pa.timestamp("s", "+02:00")),
            "2026-01-31T08:00:00Z",
            id="timestamp with a zone",
        ),
        pytest.param(pa.array([date(2026, 1, 31)]), "2026-01-31", id="date"),
        pytest.param(pa.array([time(10, 30)]), "10:30:00.000000", id="time"),
        pytest.param(pa.array([timedelta(seconds=1, milliseconds=500)]), "PT1.500000S", id="duration"),
        pytest.param(pa.array([timedelta(seconds=-90)], pa.duration("s")), "-PT90S", id="negative duration"),
        pytest.param(pa.array([Decimal("1.50")]), "1.50", id="decimal"),
        pytest.param(pa.array(['ü "\n']), 'ü "\n', id="text"),
        pytest.param(pa.array(["a"]).dictionary_encode(), "a", id="dictionary"),
        pytest.param(pa.array([[{"at": datetime(2026, 1, 31, tzinfo=UTC)}]]), [{"at": "2026-01-31T00:00:00+00:00"}], id="nested"),
        pytest.param(pa.array([None], pa.timestamp("us")), None, id="null"),
    ],
)
def test_values_have_their_json_form(tmp_path, values, expected):
    assert written(tmp_path, c=values) == [{"c": expected}]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([b"x"]), "column `c` is binary: JSON has no bytes"),
        (pa.array([[b"x"]]), "column `c` is list<.*JSON has no bytes"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "column `c` is map<.*map it to a struct or a list"),
        (pa.array([[timedelta(1)]]), "durations inside lists"),
        (pa.array([None], pa.month_day_nano_interval()), "JSON has no intervals"),
    ],
)
def test_a_type_that_json_cannot_hold_is_named(tmp_path, values, message):
    with pytest.raises(ConnectorError, match=message):
        written(tmp_path, c=values)


def test_nan_is_refused_with_its_row(tmp_path):
    with pytest.raises(RecordError, match=r"operator `write_json`: column `c`: .*replace NaN and infinity") as caught:
        written(tmp_path, k=[1, 2], c=[1.0, float("nan")])
    assert caught.value.record["k"] == 2
