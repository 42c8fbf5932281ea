"""Times of the type INT96: those that the type of their column can't hold are refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded_sources import rows
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.files.splits import Split
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.connectors.formats.row_groups import read_row_groups
from evenflow.engine.errors import ConnectorError

KINDS = {
    "plain": lambda times: times,
    "struct": lambda times: pa.StructArray.from_arrays([times], names=["at"]),
    "list": lambda times: pa.ListArray.from_arrays(pa.array(range(len(times) + 1), pa.int32()), times),
    "map": lambda times: pa.MapArray.from_arrays(pa.array(range(len(times) + 1), pa.int32()), pa.array(["k"] * len(times)), times),
}


def write(path: Any, times: pa.Array, kind: str = "plain") -> None:
    table = pa.table({"n": range(len(times)), "at": KINDS[kind](times)})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=2)


@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("year", [1, 1600, 2263, 9999])
def test_a_time_beyond_nanoseconds_is_refused_by_name(tmp_path, kind, year):
    path = tmp_path / "a.parquet"
    write(path, pa.array([datetime(2026, 1, 31), None, datetime(year, 5, 6)], pa.timestamp("us")), kind)
    problem = rf"operator `read_parquet`: .*a.parquet can't be read: column `at` has the INT96 time {year:04}-05-06 .*outputTimestampType"
    with pytest.raises(ConnectorError, match=problem):
        rows(read_parquet(path))
    assert len(rows(read_parquet(path, columns=["n"]))) == 3


def test_times_that_nanoseconds_hold_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    times = pa.array([0, None, -1, 1_001, 2**63 - 1, -(2**63) + 1], pa.timestamp("ns"))
    write(path, times)
    source = read_parquet(path)
    source.start()
    assert source.reader(0, 1).poll(100).rows.column("at").equals(times)


@given(counts=st.lists(st.one_of(st.integers(-(10**16), 10**17), st.none()), min_size=1, max_size=5), nanoseconds=st.booleans())
def test_times_arrive_as_they_were_or_not_at_all(counts, nanoseconds, tmp_path_factory):
    path = tmp_path_factory.mktemp("int96") / "a.parquet"
    times = pa.array(counts, pa.timestamp("ns" if nanoseconds else "us"))
    write(path, times)
    for unit in ("us", "ns"):
        try:
            batches = list(read_row_groups(Split(str(path), 0), 2, operator="read", int96=unit))
        except ConnectorError:
            with pytest.raises(pa.ArrowInvalid):
                times.cast(pa.timestamp(unit))
        else:
            assert pa.concat_batches(batches).column("at").equals(times.cast(pa.timestamp(unit)))
