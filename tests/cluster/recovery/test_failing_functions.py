"""An error of user code in a worker ends the job and is raised by `wait()`, with its place."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.source import Source, SourceReader

ROWS = [{"word": word, "n": n} for n, word in enumerate(["a", "b", "c"])]
BAD = {"word": "c", "n": 2}


def in_stateful_map(rows):
    return rows.key_by("word").stateful_map(lambda state, row: (1, {"inverse": 1 / (row["n"] - 2)}))


def in_an_aggregate(rows):
    class Inverses(ef.Aggregate):
        def create(self):
            return 0.0

        def add(self, accumulator, row):
            return accumulator + 1 / (row["n"] - 2)

        def merge(self, a, b):
            return a + b

        def finish(self, accumulator):
            return accumulator

    return rows.key_by("word").aggregate(inverses=Inverses())


@pytest.mark.first
@pytest.mark.parametrize(("build", "operator", "key"), [(in_stateful_map, "stateful_map", "c"), (in_an_aggregate, "aggregate", None)])
def test_a_failing_function_stops_the_job_and_names_operator_key_and_row(build, operator, key):
    flow = ef.Dataflow("failing")
    build(flow.read(ef.from_items(ROWS))).write(ef.to_list([]))
    job = flow.run()
    with pytest.raises(ef.RecordError, match=f"operator `{operator}(.combine)?`.*ZeroDivisionError: division by zero") as failure:
        job.wait("60s")
    assert failure.value.operator.startswith(operator)
    assert (failure.value.key, failure.value.record) == (key, BAD)
    assert job.status().state.value == "failed"
    assert str(job.status().error) == str(failure.value)


@pytest.mark.first
def test_a_failing_sink_callback_stops_the_job_and_shows_the_row():
    flow = ef.Dataflow("failing")
    flow.read(ef.from_items(ROWS)).write(ef.to_callback(lambda row: 1 / (row["n"] - 2)))
    with pytest.raises(ef.RecordError, match=r"operator `to_callback`.*ZeroDivisionError") as failure:
        flow.run().wait("60s")
    assert failure.value.record == BAD


def test_a_failing_source_stops_the_job_and_shows_where_it_failed():
    class Reader(SourceReader):
        finished = False

        def poll(self, max_rows):
            raise OSError("the disk is gone")

        def position(self):
            return 0

        def seek(self, position):
            pass

    class Broken(Source):
        name = "broken"

        def reader(self, index, parallelism):
            return Reader()

    flow = ef.Dataflow("failing")
    flow.read(Broken()).write(ef.to_list([]))
    with pytest.raises(ef.JobError, match=r"worker broken-0 failed: OSError: the disk is gone(.|\n)*line [0-9]+, in poll"):
        flow.run().wait("60s")


def test_a_sink_that_can_not_commit_stops_the_job(tmp_path):
    flow = ef.Dataflow("failing")
    flow.read(ef.generate(rate=1000, every="50ms")).write(ef.write_parquet(tmp_path / "out"))
    job = flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="100ms")))
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    with pytest.raises(ef.ConnectorError, match="operator `write_parquet`"):
        job.wait("60s")
