from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenflow.connectors.formats.parquet_sink import write_parquet
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError, FlowError


def test_small_batches_are_gathered_into_row_groups(tmp_path):
    sink = write_parquet(tmp_path, rows_per_group=10, compression="snappy")
    sink.start()
    writer = sink.writer(0, 1)
    for n in range(25):
        writer.write(Batch(pa.record_batch({"n": [n]})))
    (part,) = writer.prepare(1)
    metadata = pq.read_metadata(tmp_path / part["prepared"])
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [10, 10, 5]
    assert metadata.row_group(0).column(0).compression == "SNAPPY"


def test_files_sort_by_checkpoint_and_worker(tmp_path):
    sink = write_parquet(tmp_path)
    names = []
    for checkpoint in (9, 10):
        for index in (0, 1):
            writer = sink.writer(index, 2)
            writer.write(Batch(pa.record_batch({"n": [1]})))
            names += [part["final"] for part in writer.prepare(checkpoint)]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("options", "message"), [({"compression": "zip"}, "compression 'zip' is unknown"), ({"rows_per_group": 0}, "rows_per_group is 0")]
)
def test_impossible_options_are_refused(tmp_path, options, message):
    with pytest.raises(FlowError, match=message):
        write_parquet(tmp_path, **options)


@pytest.mark.parametrize("kind", [pa.month_day_nano_interval(), pa.struct({"a": pa.month_day_nano_interval()})])
def test_a_type_that_parquet_cannot_hold_is_named(tmp_path, kind):
    writer = write_parquet(tmp_path).writer(0, 1)
    with pytest.raises(ConnectorError, match=r"operator `write_parquet`: column `c` is .*: Parquet can't hold it"):
        writer.write(Batch(pa.record_batch({"c": pa.nulls(1, kind)})))
    writer.close()
    assert list(tmp_path.iterdir()) == []
