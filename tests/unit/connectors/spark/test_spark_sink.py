from __future__ import annotations

import pickle
from pathlib import Path

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenflow.connectors.spark import sink as sink_module
from evenflow.connectors.spark.sink import SparkSink, to_spark
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError


@pytest.fixture
def sink(tmp_path: Path) -> SparkSink:
    made = to_spark(path=tmp_path / "out", name="out")
    made.start()
    return made


def batch(**columns: object) -> Batch:
    return Batch(pa.record_batch(columns))


def committed(sink: SparkSink) -> list[object]:
    latest = sink.exchange.latest()
    files = [] if latest is None else sink.exchange.committed(latest)
    return sorted(value for file in files for value in pq.ParquetFile(file.path).read().column("n").to_pylist())


def test_rows_are_committed_with_their_checkpoint_and_not_before(sink: SparkSink):
    writers = [sink.writer(index, 2) for index in range(2)]
    for index, writer in enumerate(writers):
        writer.write(batch(n=[index]))
    prepared = [part for writer in writers for part in writer.prepare(1)]
    assert committed(sink) == []
    sink.commit(1, prepared)
    assert committed(sink) == [0, 1]
    assert sink.exchange.latest() == 0


def test_a_repeated_commit_changes_nothing_also_in_a_new_process(sink: SparkSink):
    writer = sink.writer(0, 1)
    prepared = []
    for checkpoint in (5, 9):
        writer.write(batch(n=[checkpoint]))
        prepared.append(msgpack.unpackb(msgpack.packb(writer.prepare(checkpoint))))
        sink.commit(checkpoint, prepared[-1])
    fresh = pickle.loads(pickle.dumps(sink))
    fresh.commit(9, prepared[1])
    fresh.commit(5, prepared[0])
    assert committed(sink) == [5, 9]
    assert sink.exchange.latest() == 1


def test_a_commit_that_was_cut_off_after_the_files_were_named_is_completed(sink: SparkSink):
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    (part,) = prepared = writer.prepare(1)
    (sink.folder / part["prepared"]).rename(sink.folder / part["final"])
    assert committed(sink) == []
    sink.commit(1, prepared)
    assert committed(sink) == [1]


def test_a_checkpoint_without_rows_makes_no_batch(sink: SparkSink):
    assert sink.commit(1, sink.writer(0, 1).prepare(1)) == []
    assert sink.exchange.latest() is None


def test_a_file_that_has_grown_is_closed_and_the_next_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sink_module, "ROLL_BYTES", 1)
    sink = to_spark(path=tmp_path / "out")
    sink.start()
    writer = sink.writer(0, 1)
    for n in range(3):
        writer.write(batch(n=[n, n]))
    sink.commit(1, writer.prepare(1))
    assert len(sink.exchange.added(0) or ()) == 3
    assert committed(sink) == [0, 0, 1, 1, 2, 2]


def test_files_that_were_never_prepared_are_removed(sink: SparkSink):
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    writer.close()
    sink.stop()
    assert {path.name for path in sink.folder.iterdir()} == {"_spark_metadata", "_evenflow"}


def test_a_column_that_changes_its_type_is_named(sink: SparkSink):
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    with pytest.raises(ConnectorError, match="operator `out`: column `n` changed from int64 to string"):
        writer.write(batch(n=["a"]))
    writer.close()


def test_a_type_that_spark_lacks_is_named(sink: SparkSink):
    writer = sink.writer(0, 1)
    with pytest.raises(ConnectorError, match=r"operator `out`: column `n` is halffloat: .*cast it to float32"):
        writer.write(batch(n=pa.array([1.5], pa.float16())))
    writer.close()


def test_an_earlier_runs_output_is_added_to_only_on_request(sink: SparkSink):
    with pytest.raises(ConnectorError, match="is not empty"):
        to_spark(path=sink.folder).start()
    more = to_spark(path=sink.folder, append=True)
    more.start()
    writer = more.writer(0, 1)
    writer.write(batch(n=[7]))
    more.commit(1, writer.prepare(1))
    assert committed(sink) == [7]


def test_batches_of_later_checkpoints_are_taken_from_the_end_of_the_log(sink: SparkSink):
    """Batches in a compacted log file are removed too, and the log continues at its new end."""
    writer = sink.writer(0, 1)
    for checkpoint in range(1, 13):
        writer.write(batch(n=[checkpoint]))
        sink.commit(checkpoint, writer.prepare(checkpoint))
    assert sink.retractable
    for _ in range(2):
        sink.retract(7)
        assert committed(sink) == list(range(1, 8))
        assert sink.exchange.latest() == 6
    for checkpoint in range(13, 17):
        writer.write(batch(n=[checkpoint]))
        sink.commit(checkpoint, writer.prepare(checkpoint))
    assert committed(sink) == [*range(1, 8), *range(13, 17)]
    assert (sink.exchange.log / "9.compact").exists()
    assert committed(to_spark(path=sink.folder, append=True, name="reader")) == committed(sink)


def test_batches_that_a_function_has_received_can_not_be_retracted(tmp_path: Path):
    handing_over = SparkSink(None, tmp_path / "out", lambda df, batch: None, False, "out")
    assert not handing_over.retractable


def started(folder: Path, run: str, *, continues: bool) -> SparkSink:
    """Start a sink without its own folder, which delivers its batches; it uses no session."""
    made = to_spark(object(), foreach_batch=lambda df, batch_id: None, name="out")
    made.of_job("job", "out", str(folder))
    made.of_run(run, continues=continues)
    made.start()
    return made


def test_files_of_a_sink_without_a_path_outlive_its_process_in_the_checkpoint_folder(tmp_path: Path):
    first = started(tmp_path, "0123456789", continues=False)
    writer = first.writer(0, 1)
    writer.write(batch(n=[1]))
    prepared = writer.prepare(1)
    first.stop()
    again = started(tmp_path, "0123456789", continues=True)
    assert again.commit(1, prepared) == [0]
    assert committed(again) == [1]
    other = started(tmp_path, "another run", continues=False)
    assert {path.name for path in (tmp_path / "exchange").iterdir()} == {"out-01234567", "out-another "}
    assert committed(other) == []
