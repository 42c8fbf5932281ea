"""Whole jobs in this process: their results, their ends, and the propagation of errors to waiting threads."""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from typing import Any

import pytest
from patience import patience

import evenflow as ef
from evenflow.connectors.python.items import ItemsSource, rows_of
from evenflow.connectors.python.list_sink import ListSink
from evenflow.engine.batch import Batch
from evenflow.engine.sink import Sink, SinkWriter
from evenflow.engine.source import Source, SourceReader
from evenflow.engine.time.event_time import EventTime
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import ScalingState
from evenflow.scheduler.protocol.requests import ShowView

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

PATIENCE = patience(30)
"""Seconds after which a test gives up; no step takes so long."""


class Broken(Source, SourceReader):
    """An endless source that fails in a chosen place."""

    name = "broken"
    finished = False

    def __init__(self, where: str) -> None:
        self.where, self.stopped, self.closed = where, False, threading.Event()

    def start(self) -> None:
        self._fail_in("start")

    def stop(self) -> None:
        self.stopped = True

    def failure(self) -> str | None:
        return "the query is gone" if self.where == "outside" else None

    def reader(self, index: int, parallelism: int) -> Broken:
        self._fail_in("reader")
        return self

    def poll(self, max_rows: int) -> None:
        self._fail_in("poll")

    def position(self) -> None: ...

    def seek(self, position: Any) -> None: ...

    def close(self) -> None:
        self.closed.set()

    def _fail_in(self, where: str) -> None:
        if self.where == where:
            raise ZeroDivisionError(f"broken in {where}")


class Hesitant(ItemsSource, SourceReader):
    """A source of single rows, each after an empty poll."""

    def reader(self, index: int, parallelism: int) -> Hesitant:
        self._reader, self._polls = super().reader(index, parallelism), 0
        return self

    def poll(self, max_rows: int) -> Batch | None:
        self._polls += 1
        return self._reader.poll(1) if self._polls % 2 else None

    @property
    def finished(self) -> bool:
        return self._reader.finished

    def watermark(self) -> int:
        return self._reader.watermark()

    def position(self) -> Any:
        return self._reader.position()

    def seek(self, position: Any) -> None:
        self._reader.seek(position)


class BrokenSink(ListSink):
    """A sink that fails in a chosen place, and records if it was stopped."""

    def __init__(self, where: str) -> None:
        super().__init__([], "broken_sink")
        self.where, self.stopped = where, False

    def start(self) -> None:
        super().start()
        self._fail_in("start")

    def stop(self) -> None:
        self.stopped = True

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        self._fail_in("writer")
        return super().writer(index, parallelism)

    def commit(self, checkpoint: int, committables: Any) -> list[Any]:
        self._fail_in("commit")
        return super().commit(checkpoint, committables)

    def deliver(self, payload: Any) -> None:
        self._fail_in("deliver")

    def _fail_in(self, where: str) -> None:
        if self.where == where:
            raise ZeroDivisionError(f"broken in {where}")


class Telling(ListSink):
    """A list that signals the arrival of rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        super().__init__(self.rows, "telling")
        self.delivered = threading.Event()

    def deliver(self, payload: Any) -> None:
        super().deliver(payload)
        self.delivered.set()


def endless(flow: ef.Dataflow) -> tuple[ef.Stream, threading.Event]:
    """Return an endless stream, and an event that is set once some rows have passed through the flow."""
    flowing = threading.Event()
    stream = flow.read(ef.generate(rate=2000, keys=4))
    stream.write(ef.to_callback(lambda row: flowing.set()))
    return stream, flowing


def run(flow: ef.Dataflow, **options: Any) -> ef.Job:
    return flow.run(runtime="local", **options)


def test_rows_go_from_sources_to_sinks():
    flow, totals, evens = ef.Dataflow("f"), [], []
    numbers = flow.read(ef.from_items(range(100)))
    numbers.key_by(lambda row: row["item"] % 3).aggregate(emit="final", n=ef.count(), sum=ef.sum("item")).write(ef.to_list(totals))
    numbers.filter(lambda row: row["item"] % 2 == 0).write(ef.to_list(evens))
    job = run(flow, parallelism=3).wait()
    assert job.status().state is JobState.FINISHED
    assert sorted((row["key"], row["n"], row["sum"]) for row in totals) == [(0, 34, 1683), (1, 33, 1617), (2, 33, 1650)]
    assert sorted(row["item"] for row in evens) == list(range(0, 100, 2))


def test_flow_can_run_again():
    flow, rows = ef.Dataflow("f"), []
    flow.read(ef.from_items([1, 2])).write(ef.to_list(rows))
    run(flow).wait()
    run(flow).wait()
    assert [row["item"] for row in rows] == [1, 2, 1, 2]


def test_empty_input_finishes():
    flow, rows = ef.Dataflow("f"), []
    flow.read(ef.from_items([])).key_by("item").aggregate(n=ef.count(), emit="final").write(ef.to_list(rows))
    run(flow, parallelism=2).wait()
    assert rows == []


def test_late_records_are_counted_and_can_be_had():
    items = [{"k": "a", "ts": ts} for ts in (0, 1_000, 30_000, 2_000, 31_000)]
    flow, windows, late = ef.Dataflow("f"), [], []
    source = Hesitant(rows_of(items, "items"), EventTime("ts"), "items")
    results = flow.read(source).key_by("k").window(ef.tumbling("10s")).aggregate(n=ef.count())
    results.write(ef.to_list(windows))
    results.late.write(ef.to_list(late))
    job = run(flow).wait()
    assert [row["n"] for row in windows] == [2, 2]
    assert late == [{"k": "a", "ts": 2_000}]
    assert sum(figures.late_records for figures in job.metrics()) == 1
    (told,) = job._runtime.ask(ShowView()).dropped_records
    assert (told.what.operator, told.what.kind, told.what.record) == ("aggregate", "late", "{'k': 'a', 'ts': 2000}")


def test_error_of_a_function_is_raised_where_the_job_is_waited_for():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([3, 0])).map(lambda row: 1 // row["item"]).named("divide").write(ef.to_list([]))
    job = run(flow)
    with pytest.raises(ef.RecordError, match=r"(?s)operator `divide`: .*ZeroDivisionError.*record: \{'item': 0\}"):
        job.wait(PATIENCE)
    assert job.status().state is JobState.FAILED
    with pytest.raises(ef.RecordError):
        job.wait(PATIENCE)


def test_nothing_is_delivered_of_a_job_that_fails():
    flow, rows = ef.Dataflow("f"), []
    numbers = flow.read(ef.from_items([1, 0]))
    numbers.write(ef.to_list(rows))
    numbers.map(lambda row: 1 // row["item"]).write(ef.to_list([]))
    with pytest.raises(ef.RecordError):
        run(flow).wait(PATIENCE)
    assert rows == []


@pytest.mark.parametrize("where", ["reader", "poll"])
def test_source_that_fails_in_a_worker_fails_the_job_with_its_traceback(where):
    flow, source = ef.Dataflow("f"), Broken(where)
    flow.read(source).write(ef.to_list([]))
    with pytest.raises(ef.JobError, match=rf"(?s)worker broken-0 failed: ZeroDivisionError: broken in {where}.*in _fail_in"):
        run(flow).wait(PATIENCE)
    assert source.stopped


def test_an_error_outside_the_workers_fails_the_job():
    flow, source = ef.Dataflow("f"), Broken("outside")
    flow.read(source).write(ef.to_list([]))
    with pytest.raises(ef.ConnectorError, match="source `broken`: the query is gone"):
        run(flow).wait(PATIENCE)
    assert source.stopped
    assert source.closed.is_set()


@pytest.mark.parametrize("where", ["writer", "commit", "deliver"])
def test_sink_that_fails_fails_the_job_and_is_stopped(where):
    flow, sink = ef.Dataflow("f"), BrokenSink(where)
    flow.read(ef.from_items([1])).write(sink)
    with pytest.raises(ef.JobError, match=f"ZeroDivisionError: broken in {where}"):
        run(flow).wait(PATIENCE)
    assert sink.stopped


@pytest.mark.parametrize(("source", "sink"), [("start", ""), ("", "start")])
def test_connector_that_can_not_start_fails_at_once_and_leaves_nothing_running(source, sink):
    flow, reading, writing = ef.Dataflow("f"), Broken(source), BrokenSink(sink)
    flow.read(reading).write(writing)
    with pytest.raises(ZeroDivisionError, match="broken in start"):
        run(flow)
    assert reading.stopped
    assert writing.stopped == bool(sink), "a sink starts once the sources have"
    assert not [thread for thread in threading.enumerate() if thread.name == "evenflow-f"]


def test_draining_ends_an_endless_job_with_everything_that_it_read():
    flow, counts, rows = ef.Dataflow("f"), [], []
    stream, flowing = endless(flow)
    stream.write(ef.to_list(rows))
    stream.key_by("key").aggregate(n=ef.count(), emit="final").write(ef.to_list(counts))
    job = run(flow, parallelism=2)
    assert flowing.wait(PATIENCE)
    job.stop(drain=True)
    assert job.wait(PATIENCE).status().state is JobState.FINISHED
    assert sum(row["n"] for row in counts) == len(rows) > 0
    assert sorted(row["seq"] for row in rows) == sorted({row["seq"] for row in rows})


def test_stop_right_after_the_start_is_not_lost():
    flow = ef.Dataflow("f")
    endless(flow)
    job = run(flow)
    job.stop()
    assert job.wait(PATIENCE).status().state is JobState.FINISHED


def test_cancel_ends_an_endless_job_without_a_commit():
    flow, rows = ef.Dataflow("f"), []
    stream, flowing = endless(flow)
    stream.write(ef.to_list(rows))
    job = run(flow)
    assert flowing.wait(PATIENCE)
    job.cancel()
    assert job.wait(PATIENCE).status().state is JobState.CANCELLED
    assert rows == []


def test_a_sink_that_ends_its_thread_when_rows_are_delivered_fails_the_job():
    class Leaving(ListSink):
        def deliver(self, payload: Any) -> None:
            sys.exit(3)

    flow = ef.Dataflow("leaving")
    flow.read(ef.from_items([1])).write(Leaving([], "leaving"))
    with pytest.raises(ef.JobError, match="can't be followed: SystemExit: 3"):
        run(flow).wait(PATIENCE)


def test_rows_are_delivered_as_checkpoints_complete():
    flow, sink = ef.Dataflow("f"), Telling()
    stream, _ = endless(flow)
    stream.write(sink)
    job = run(flow, config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval="20ms")))
    assert sink.delivered.wait(PATIENCE)
    job.cancel()
    job.wait(PATIENCE)
    assert job.status().completed_checkpoints >= 1
    assert len({row["seq"] for row in sink.rows}) == len(sink.rows) > 0


def test_wait_gives_up_after_its_timeout_and_the_job_runs_on():
    flow = ef.Dataflow("f")
    endless(flow)
    job = run(flow)
    with pytest.raises(TimeoutError, match=r"job `f` has not ended within 1ms; it is (starting|running)"):
        job.wait("1ms")
    assert not job.status().state.final
    job.cancel()
    job.wait(PATIENCE)


def is_waiting(thread: threading.Thread) -> bool:
    """Return True if the thread is in `Job.wait`, where the job's handle is ready for an interrupt."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code is not threading.Event.wait.__code__:
        frame = frame.f_back
    return frame is not None and frame.f_back is not None and frame.f_back.f_code is ef.Job.wait.__code__


def test_interrupt_cancels_the_job_and_goes_on_as_itself():
    flow, sink = ef.Dataflow("f"), BrokenSink("")
    stream, _ = endless(flow)
    interrupt = threading.Event()

    def press_once(row: dict[str, Any]) -> None:
        if not interrupt.is_set() and is_waiting(threading.main_thread()):
            interrupt.set()
            signal.raise_signal(signal.SIGINT)

    stream.write(ef.to_callback(press_once, name="press"))
    stream.write(sink)
    job = run(flow)
    with pytest.raises(KeyboardInterrupt):
        job.wait(PATIENCE)
    assert job.status().state is JobState.CANCELLED
    assert sink.stopped


def test_metrics_count_the_rows_of_every_worker():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items(range(10))).key_by("item").stateful_map(lambda state, row: (1, row)).write(ef.to_list([]))
    job = run(flow, parallelism=2).wait()
    figures = {figure.worker: figure for figure in job.metrics()}
    assert sum(figures[f"from_items-{i}"].rows_in for i in range(2)) == 10
    assert sum(figures[f"stateful_map-{i}"].rows_in for i in range(2)) == 10
    assert job.metrics_url is None


def test_handle_shows_the_state_of_its_job():
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).write(ef.to_list([]))
    assert repr(run(flow).wait()) == "<Job 'f' finished>"


def test_sinks_of_every_kind_are_stopped_after_the_last_delivery():
    order: list[str] = []

    class Noting(Telling):
        def deliver(self, payload: Any) -> None:
            super().deliver(payload)
            order.append("delivered")

        def stop(self) -> None:
            order.append("stopped")

    flow = ef.Dataflow("f")
    sink: Sink = Noting()
    flow.read(ef.from_items([1])).write(sink)
    run(flow).wait()
    assert order == ["delivered", "stopped"]


def counted(state: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    n = (state or 0) + 1
    return n, {"key": row["key"], "n": n}


def test_operators_are_scaled_in_mid_stream_and_no_row_is_lost_or_counted_twice():
    flow, rows, numbered, totals, windows = ef.Dataflow("f"), [], [], [], []
    flowing = threading.Event()
    stream = flow.read(ef.generate(rate=4_000, keys=50, string_keys=True, event_rate=1_000, max_delay="200ms"))
    stream.write(ef.to_callback(lambda row: flowing.set()))
    stream.write(ef.to_list(rows, name="rows"))
    keyed = stream.key_by("key")
    keyed.stateful_map(counted).named("numbered").write(ef.to_list(numbered, name="to_numbered"))
    keyed.aggregate(n=ef.count(), total=ef.sum("value"), emit="final").named("totals").write(ef.to_list(totals, name="to_totals"))
    keyed.window(ef.tumbling("500ms")).aggregate(n=ef.count()).named("windows").write(ef.to_list(windows, name="to_windows"))
    job = run(flow, config=ef.JobConfig(parallelism=1, key_groups=16, metrics=ef.MetricsConfig(window="50ms")))
    assert flowing.wait(PATIENCE)
    changes = [("numbered", 4), ("generate", 3), ("windows", 3), ("numbered", 2), ("totals", 2), ("generate", 1), ("windows", 1)]
    for operator, workers in changes:
        report = job.scale(operator, workers, timeout=PATIENCE)
        assert (report.state, report.after) == (ScalingState.DONE, workers)
    job.stop(drain=True)
    job.wait(PATIENCE)
    assert [(report.operator, report.after) for report in job.scalings()] == changes
    seen = Counter(row["key"] for row in rows)
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))
    assert sorted((row["key"], row["n"]) for row in numbered) == sorted((key, n + 1) for key in seen for n in range(seen[key]))
    assert {row["key"]: row["n"] for row in totals} == seen
    assert len(totals) == len(seen)
    found = {(row["key"], round(row["window_start"].timestamp() * 1000)): row["n"] for row in windows}
    assert found == Counter((row["key"], row["ts"] // 500 * 500) for row in rows)
    assert len(windows) == len(found)


def test_scaling_that_is_refused_changes_nothing():
    flow = ef.Dataflow("f")
    stream, flowing = endless(flow)
    stream.key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
    job = run(flow, config=ef.JobConfig(key_groups=4))
    assert flowing.wait(PATIENCE)
    with pytest.raises(ef.RequestError, match="`aggregate` can't have 5 workers: it has 4 key groups"):
        job.scale("aggregate", 5)
    assert job.scalings() == []
    job.cancel()
    job.wait(PATIENCE)


def test_source_that_can_not_be_shared_out_is_not_scaled_and_reads_on():
    flow, source = ef.Dataflow("f"), Broken("")
    flow.read(source).write(ef.to_list([]))
    job = run(flow)
    with pytest.raises(
        ef.RequestError, match="operator `broken` can't have 2 workers: its source can't reassign its splits while it is read"
    ):
        job.scale("broken", 2)
    assert job.scalings() == []
    job.cancel()
    job.wait(PATIENCE)
