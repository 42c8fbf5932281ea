from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenflow.connectors.files.splits import Split
from evenflow.connectors.formats.row_groups import open_parquet, read_row_groups, time_bounds
from evenflow.engine.errors import ConnectorError
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME
from evenflow.engine.time.event_time import EventTime

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("values", "kind", "unit", "bounds"),
    [
        ([3, 1, 2], pa.int64(), "ms", (1_000, 3_000)),
        ([3, 1, None], pa.int32(), "s", (1_000_000, 3_000_000)),
        ([-1_500, 2_500], pa.int64(), "ns", (-2, 2)),
        ([2**62, 1], pa.uint64(), "ns", (0, 2**62 // 1000)),
        ([3, 1], pa.timestamp("s"), "ms", (1_000_000, 3_000_000)),
        ([3, 1], pa.timestamp("ms", tz="Europe/Prague"), "s", (1_000, 3_000)),
        ([3, 1], pa.timestamp("us", tz="UTC"), "s", (1, 3)),
        ([3_999, 1_001], pa.timestamp("ns"), "s", (1, 3)),
        ([dt.date(1970, 1, 2), dt.date(1969, 12, 31)], pa.date32(), "s", (-DAY, DAY)),
        ([0.5, 1.5], pa.float64(), "s", (None, None)),
        (["a"], pa.string(), "s", (None, None)),
        ([], pa.int64(), "s", (MAX_TIME, MIN_TIME)),
    ],
)
def test_bounds_of_event_time_are_those_of_the_column(tmp_path: Path, values, kind, unit, bounds):
    pq.write_table(pa.table({"other": values, "t": pa.array(values, kind)}), tmp_path / "a.parquet")
    with open_parquet(str(tmp_path / "a.parquet"), "read") as file:
        assert time_bounds(file.metadata, EventTime("t", unit=unit)) == bounds


def test_bounds_are_of_the_range_of_row_groups(tmp_path: Path):
    pq.write_table(pa.table({"t": [1, 2, 3, 4, 5]}), tmp_path / "a.parquet", row_group_size=2)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert time_bounds(metadata, EventTime("t", unit="us"), (1, 2)) == (3, 4)


@pytest.mark.parametrize("options", [{"write_statistics": False}, {"use_deprecated_int96_timestamps": True}])
def test_without_statistics_there_are_no_bounds(tmp_path: Path, options):
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("us"))}), tmp_path / "a.parquet", **options)
    assert time_bounds(pq.read_metadata(tmp_path / "a.parquet"), EventTime("t")) == (None, None)


def test_a_missing_column_has_no_bounds(tmp_path: Path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    assert time_bounds(pq.read_metadata(tmp_path / "a.parquet"), EventTime("t")) == (None, None)


def test_a_range_of_row_groups_is_read_in_order_and_in_batches(tmp_path: Path):
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": range(10), "m": range(10)}), path, row_group_size=4)
    batches = list(read_row_groups(Split(path, 0, row_groups=(1, 3)), 5, operator="read", columns=["n"]))
    assert [value for batch in batches for value in batch.to_pydict()["n"]] == [4, 5, 6, 7, 8, 9]
    assert max(batch.num_rows for batch in batches) <= 5
    assert batches[0].schema.names == ["n"]


def test_a_file_cut_short_is_named(tmp_path: Path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": range(1000)}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ConnectorError, match=f"operator `read`: {path} can't be read as Parquet"):
        list(read_row_groups(Split(str(path), 0), 5, operator="read"))


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ConnectorError, match=r"gone\.parquet does not exist"):
        list(read_row_groups(Split(str(tmp_path / "gone.parquet"), 0), 5, operator="read"))
