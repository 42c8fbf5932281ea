"""Properties that all sinks of files share, tested for each of them."""

from __future__ import annotations

import pickle

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.files.file_sink import FileSink
from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.csv_sink import write_csv
from evenflow.connectors.formats.json import read_json
from evenflow.connectors.formats.json_sink import write_json
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.connectors.formats.parquet_sink import write_parquet
from evenflow.engine.batch import Batch
from evenflow.engine.errors import ConnectorError, FlowError

FORMATS = [(write_parquet, read_parquet), (write_csv, read_csv), (write_json, read_json)]

every_format = pytest.mark.parametrize(("write", "read"), FORMATS, ids=["parquet", "csv", "json"])
every_sink = pytest.mark.parametrize("write", [write for write, _ in FORMATS], ids=["parquet", "csv", "json"])


def batch(**columns):
    return Batch(pa.record_batch(columns))


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def rows(read, folder):
    if not visible(folder):
        return []
    source = read(folder)
    source.start()
    reader, found = source.reader(0, 1), []
    while not reader.finished:
        polled = reader.poll(1000)
        found += [] if polled is None else polled.to_rows()
    return found


def over_the_wire(committables):
    return msgpack.unpackb(msgpack.packb(committables))


@every_format
def test_nothing_is_visible_before_the_commit(write, read, tmp_path):
    sink = write(tmp_path / "out")
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1, 2]))
    assert visible(tmp_path / "out") == []
    committables = over_the_wire(writer.prepare(1))
    assert visible(tmp_path / "out") == []
    sink.commit(1, committables)
    assert rows(read, tmp_path / "out") == [{"n": 1}, {"n": 2}]


@every_format
def test_a_commit_may_be_repeated_even_by_another_process(write, read, tmp_path):
    sink = write(tmp_path / "out")
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    committables = writer.prepare(1)
    sink.commit(1, committables)
    sink.commit(1, committables)
    write(tmp_path / "out").commit(1, committables)
    assert rows(read, tmp_path / "out") == [{"n": 1}]


@every_format
@given(plan=st.lists(st.lists(st.lists(st.integers(), max_size=3), max_size=3), max_size=4), workers=st.integers(1, 3))
def test_files_hold_what_was_written_in_committed_checkpoints(write, read, tmp_path_factory, plan, workers):
    folder = tmp_path_factory.mktemp("out")
    sink = write(folder)
    sink.start()
    writers = [sink.writer(index, workers) for index in range(workers)]
    for checkpoint, batches in enumerate(plan, 1):
        for place, values in enumerate(batches):
            writers[place % workers].write(batch(n=pa.array([value % 1000 for value in values], pa.int64())))
        sink.commit(checkpoint, [part for writer in writers for part in writer.prepare(checkpoint)])
    written = [value % 1000 for batches in plan for values in batches for value in values]
    assert sorted(row["n"] for row in rows(read, folder)) == sorted(written)


@every_sink
def test_a_worker_and_checkpoint_without_rows_makes_no_file(write, tmp_path):
    sink = write(tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(n=pa.array([], pa.int64())))
    assert writer.prepare(1) == []
    sink.commit(1, [])
    assert list(tmp_path.iterdir()) == []


@every_sink
def test_closing_sweeps_what_was_never_prepared_and_nothing_else(write, tmp_path):
    sink = write(tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    committables = writer.prepare(1)
    writer.write(batch(n=[2]))
    writer.close()
    assert [path.name for path in tmp_path.iterdir()] == [committables[0]["prepared"]]
    sink.commit(1, committables)
    assert len(visible(tmp_path)) == 1


@every_sink
def test_stopping_sweeps_what_a_killed_worker_left_of_this_run(write, tmp_path):
    sink, other = write(tmp_path), write(tmp_path)
    for each in (sink, other):
        each.start()
    killed = pickle.loads(pickle.dumps(sink)).writer(0, 1)
    killed.write(batch(n=[1]))
    alive = other.writer(0, 1)
    alive.write(batch(n=[2]))
    sink.stop()
    assert len(list(tmp_path.iterdir())) == 1
    other.commit(1, alive.prepare(1))
    assert len(visible(tmp_path)) == 1
    killed.close()


@every_sink
def test_a_prepared_file_that_is_gone_is_named(write, tmp_path):
    sink = write(tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    committables = writer.prepare(1)
    (tmp_path / committables[0]["prepared"]).unlink()
    with pytest.raises(ConnectorError, match=r"\.prepared is missing from"):
        sink.commit(1, committables)


@every_sink
@pytest.mark.parametrize("committed", [False, True])
def test_file_that_was_cut_short_is_not_taken_for_what_was_written(write, committed, tmp_path):
    sink = write(tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    committables = over_the_wire(writer.prepare(1))
    if committed:
        sink.commit(1, committables)
    path = tmp_path / committables[0]["final" if committed else "prepared"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ConnectorError, match=rf"{path.name} has .* bytes, and .* were written: its rows are lost"):
        sink.commit(1, committables)
    del committables[0]["size"]
    sink.commit(1, committables)  # prepared before sizes were recorded


@every_format
def test_a_column_that_was_all_null_may_take_a_type(write, read, tmp_path):
    sink = write(tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    for values in (pa.nulls(1), pa.array([1.5]), pa.nulls(1)):
        writer.write(batch(k=[1], n=values))
    committables = writer.prepare(1)
    sink.commit(1, committables)
    assert len(committables) == 2
    assert sorted(rows(read, tmp_path), key=str) == [{"k": 1, "n": 1.5}, {"k": 1, "n": None}, {"k": 1, "n": None}]


@every_sink
@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({"n": ["x"]}, "column `n` changed from int64 to string"),
        ({"n": [1], "m": [1]}, "column `m` is new in a later batch"),
        ({"m": [1]}, "column `n` is missing in a later batch"),
    ],
)
def test_a_schema_that_changes_midway_is_refused_also_after_a_checkpoint(write, tmp_path, later, message):
    sink = write(tmp_path, name="out")
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    writer.prepare(1)
    with pytest.raises(ConnectorError, match=f"operator `out`: {message}"):
        writer.write(batch(**later))
    writer.close()


@every_format
def test_columns_in_another_order_go_where_they_belong(write, read, tmp_path):
    sink = write(tmp_path)
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(batch(a=[1], b=["x"]))
    writer.write(batch(b=["y"], a=[2]))
    sink.commit(1, writer.prepare(1))
    assert rows(read, tmp_path) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@every_format
def test_a_folder_that_is_not_empty_needs_a_decision(write, read, tmp_path):
    for options, expected in (({}, [1]), ({"append": True}, [1, 1]), ({"overwrite": True}, [1])):
        sink = write(tmp_path, **options)
        sink.start()
        writer = sink.writer(0, 1)
        writer.write(batch(n=[1]))
        sink.commit(1, writer.prepare(1))
        assert [row["n"] for row in rows(read, tmp_path)] == expected
    with pytest.raises(ConnectorError, match="is not empty; choose another folder, or say overwrite=True or append=True"):
        write(tmp_path).start()


@every_sink
def test_overwriting_deletes_nothing_but_part_files(write, tmp_path):
    (tmp_path / "part-1.parquet").touch()
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(ConnectorError, match=r"deletes part files only, but .* holds `thesis.txt`"):
        write(tmp_path, overwrite=True).start()
    assert visible(tmp_path) == ["part-1.parquet", "thesis.txt"]


@every_sink
def test_overwriting_and_appending_at_once_is_refused(write, tmp_path):
    with pytest.raises(FlowError, match="choose one of overwrite=True and append=True"):
        write(tmp_path, overwrite=True, append=True)


@every_sink
def test_a_file_in_place_of_the_folder_is_named(write, tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(ConnectorError, match="out can't be used as a folder"):
        write(tmp_path / "out").start()


@every_sink
def test_a_folder_that_disappears_is_named(write, tmp_path):
    writer = write(tmp_path / "never_made").writer(0, 1)
    with pytest.raises(ConnectorError, match=r"can't write into .*never_made"):
        writer.write(batch(n=[1]))
    writer.close()


class BrokenFormat(FileSink):
    extension = ".broken"

    def encoder(self, file, schema):
        raise OSError("disk on fire")


def test_a_part_that_cannot_be_begun_leaves_nothing_behind(tmp_path):
    writer = BrokenFormat(tmp_path, overwrite=False, append=False, name="broken").writer(0, 1)
    with pytest.raises(ConnectorError, match=r"operator `broken`: can't write into .*: disk on fire"):
        writer.write(batch(n=[1]))
    assert list(tmp_path.iterdir()) == []


@every_format
def test_files_of_later_checkpoints_of_this_run_are_retracted(write, read, tmp_path):
    folder = tmp_path / "out"
    earlier = write(folder, append=True)
    earlier.start()
    commit_one(earlier, checkpoint=9, n=0)
    sink = write(folder, append=True)
    sink.start()
    for checkpoint in (1, 2, 3):
        commit_one(sink, checkpoint, n=checkpoint)
    assert sink.retractable
    for _ in range(2):
        assert sink.retract(1) == []
        assert sorted(row["n"] for row in rows(read, folder)) == [0, 1]
    assert pickle.loads(pickle.dumps(sink)).retract(0) == []
    assert [row["n"] for row in rows(read, folder)] == [0]


def commit_one(sink, checkpoint, n):
    writer = sink.writer(0, 1)
    writer.write(batch(n=[n]))
    sink.commit(checkpoint, writer.prepare(checkpoint))


def hidden(folder):
    return sorted(path.suffix for path in folder.iterdir() if path.name.startswith("."))


def killed(write, folder, job="job"):
    """Simulate a run that was killed after it committed a row, prepared another and began a third; return the prepared one."""
    sink = write(folder, append=True)
    sink.start()
    sink.take_over(job, list)
    commit_one(sink, 1, n=1)
    writer = sink.writer(0, 1)
    writer.write(batch(n=[2]))
    prepared = writer.prepare(2)
    writer.write(batch(n=[3]))
    for part in writer._open.values():
        part.abandon()  # as the kernel does
    sink.parts._claim.release()
    return prepared


@every_format
def test_leftovers_of_a_killed_run_of_the_job_are_removed_by_the_next(write, read, tmp_path):
    killed(write, tmp_path)
    assert hidden(tmp_path) == [".inprogress", ".owner", ".prepared"]
    sink = write(tmp_path, append=True)
    sink.start()
    sink.take_over("job", list)
    assert hidden(tmp_path) == [".owner"]
    assert [row["n"] for row in rows(read, tmp_path)] == [1]
    sink.stop()
    assert hidden(tmp_path) == []


@every_sink
@pytest.mark.parametrize("needs", ["what was prepared", "unknown"])
def test_prepared_file_that_a_checkpoint_still_needs_stays_until_none_does(write, tmp_path, needs):
    prepared = killed(write, tmp_path)
    next_run = write(tmp_path, append=True)
    next_run.start()
    next_run.take_over("job", lambda: [*prepared, {"of": "another sink"}] if needs == "what was prepared" else None)
    assert hidden(tmp_path) == [".owner", ".owner", ".prepared"]
    next_run.commit(2, prepared)
    next_run.stop()
    assert hidden(tmp_path) == [".owner"]
    last = write(tmp_path, append=True)
    last.start()
    last.take_over("job", list)
    last.stop()
    assert hidden(tmp_path) == []


@every_sink
@pytest.mark.parametrize("who", ["another job", "the same job, which is alive"])
def test_files_of_others_in_the_same_folder_stay(write, tmp_path, who):
    if who == "another job":
        killed(write, tmp_path, job="another")
    else:
        alive = write(tmp_path, append=True)
        alive.start()
        alive.take_over("job", list)
        writer = alive.writer(0, 1)
        writer.write(batch(n=[1]))
        prepared = writer.prepare(1)
        writer.write(batch(n=[1]))
    there = set(tmp_path.iterdir())
    sink = write(tmp_path, append=True)
    sink.start()
    sink.take_over("job", list)
    assert there < set(tmp_path.iterdir())
    if who != "another job":
        alive.commit(1, prepared)
        assert len(visible(tmp_path)) == 1
        writer.close()
        alive.stop()
    sink.stop()


@every_sink
def test_run_that_is_cancelled_leaves_what_its_newest_checkpoint_may_need_and_says_whose_it_is(write, tmp_path):
    sink = write(tmp_path)
    sink.start()
    sink.take_over("job", list)
    writer = sink.writer(0, 1)
    writer.write(batch(n=[1]))
    prepared = pickle.loads(pickle.dumps(sink)).writer(0, 1), writer.prepare(1)
    assert prepared[1]
    sink.stop()
    assert hidden(tmp_path) == [".owner", ".prepared"]


@every_sink
def test_dates_with_a_time_of_day_are_refused(write, tmp_path):
    sink = write(tmp_path / "out")
    sink.start()
    days = pa.array([86_400_000, None, 90_000_000], pa.int64()).view(pa.date64())
    writer = sink.writer(0, 1)
    writer.write(batch(day=days[:2]))
    with pytest.raises(ConnectorError, match=f"operator `{sink.name}`: column `day` would lose its times of the day .*90000000"):
        writer.write(batch(day=days))
    writer.close()
