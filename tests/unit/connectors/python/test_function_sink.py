from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from source_clocks import slow_until

import evenflow as ef
from evenflow.connectors.python.function_sink import to_function
from evenflow.engine.batch import Batch


def batch(*numbers: int) -> Batch:
    return Batch(pa.record_batch({"n": pa.array(numbers, pa.int64())}))


def test_the_function_gets_batches_and_commit_what_it_returned_since_the_checkpoint_before():
    taken, committed = [], []

    def take(rows):
        taken.append(rows)
        return ("part", len(taken))

    sink = to_function(take, commit=lambda checkpoint, values: committed.append((checkpoint, values)))
    writers = [sink.writer(index, 2) for index in range(2)]
    writers[0].write(batch(1, 2))
    writers[1].write(batch(3))
    writers[1].write(batch())
    prepared = [value for writer in writers for value in writer.prepare(4)]
    assert (taken, committed) == ([[{"n": 1}, {"n": 2}], [{"n": 3}]], [])
    sink.commit(4, prepared)
    sink.commit(4, prepared)
    sink.commit(5, [value for writer in writers for value in writer.prepare(5)])
    assert committed == [(4, [("part", 1), ("part", 2)])] * 2


def test_without_commit_nothing_is_kept_and_nothing_promised():
    sink = to_function(lambda rows: object())
    writer = sink.writer(0, 1)
    writer.write(batch(1))
    assert writer.prepare(1) == []
    assert "at least once" in sink.guarantee
    assert sink.retractable


def test_with_commit_rows_count_with_their_checkpoint_and_are_not_retracted():
    sink = to_function(lambda rows: 1, commit=lambda checkpoint, values: None)
    assert "exactly once if commit is atomic" in sink.guarantee
    assert not sink.retractable


def test_an_error_of_the_function_names_its_batch():
    with pytest.raises(ef.RecordError, match=r"operator `alert`: .*raised ZeroDivisionError") as caught:
        to_function(lambda rows: 1 / 0, name="alert").writer(0, 1).write(batch(5, 6))
    assert caught.value.record == "a batch of 2 rows beginning with {'n': 5}"


def test_a_value_that_can_not_be_kept_is_named():
    sink = to_function(lambda rows: object(), commit=lambda checkpoint, values: None)
    with pytest.raises(ef.ConnectorError, match=r"operator `to_function`: .* returned <object .*>, which can't be kept until the commit"):
        sink.writer(0, 1).write(batch(1))


@pytest.mark.parametrize(("function", "commit"), [(lambda: None, None), (print, 5), (lambda rows: 1, lambda checkpoint: None)])
def test_functions_with_wrong_parameters_are_refused(function, commit):
    with pytest.raises(ef.FlowError, match="to_function"):
        to_function(function, commit=commit)


@pytest.mark.usefixtures("waiting_for_jobs")
def test_every_row_of_a_job_that_goes_back_is_committed_once(tmp_path):
    staged: dict[int, list[int]] = {}
    visible: dict[int, list[Any]] = {}
    failed = []

    def stage(rows):
        staged[len(staged)] = [row["seq"] for row in rows]
        return len(staged) - 1

    def commit(checkpoint, values):
        visible.setdefault(checkpoint, values)
        if len(visible) == 3 and not failed:
            failed.append(checkpoint)
            raise OSError("after it was done")
        assert visible[checkpoint] == values

    flow = ef.Dataflow("staged")
    flow.read(ef.generate(total=2_000, rate=4_000, clock=slow_until(lambda: failed))).write(ef.to_function(stage, commit=commit))
    restart = ef.RestartConfig(delay="1ms", most=10)
    saved = ef.CheckpointConfig(str(tmp_path), interval="20ms")
    flow.run(runtime="local", config=ef.JobConfig(checkpoint=saved, restart=restart)).wait("120s")
    assert failed
    assert sorted(n for values in visible.values() for value in values for n in staged[value]) == list(range(2_000))
