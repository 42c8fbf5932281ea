"""Programs that stop, drain, or go on where an earlier run stopped, as users write them."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from patience import patience

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

PATIENCE = "60s"


class Numbers:
    """A stream of seconds without an end, as a partition of a generator; `reached(n)` waits until number `n` was asked for.

    It gives `burst` numbers, then waits until it is let `go_on`.
    """

    def __init__(self, burst: int) -> None:
        self.limit, self._changed = burst, threading.Condition()
        self._asked = 0

    def __call__(self, partition: int, position: int | None) -> Any:
        number = position or 0
        while True:
            with self._changed:
                self._asked = max(self._asked, number)
                self._changed.notify_all()
            if number >= self.limit:
                yield None
                continue
            yield {"key": "ab"[number % 2], "n": number, "ts": number}, number + 1
            number += 1

    def go_on(self, burst: int) -> None:
        self.limit += burst

    def reached(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._asked >= number, patience(30))


def read(flow: ef.Dataflow, numbers: Numbers) -> ef.Stream:
    return flow.read(ef.from_generator(numbers, event_time="ts", unit="s"))


def started(flow: ef.Dataflow, folder: Path | None, **options: Any) -> ef.Job:
    checkpoint = ef.CheckpointConfig(folder, interval="20ms") if folder is not None else ef.CheckpointConfig(interval="20ms")
    config = ef.JobConfig(parallelism=1, key_groups=16, checkpoint=checkpoint, network=ef.NetworkConfig(linger=0))
    return flow.run(runtime="local", config=config, **options)


def stopped(flow: ef.Dataflow, folder: Path | None, numbers: Numbers, **options: Any) -> None:
    """Run the flow until it has read what there is, and stop it."""
    job = started(flow, folder, **options)
    numbers.reached(numbers.limit)
    job.stop()
    job.wait(PATIENCE)
    assert job.status().state.value == "finished"


def last_checkpoint(folder: Path, job: str) -> Path:
    return max((folder / job).glob("checkpoint-*/manifest")).parent


def windows(numbers: Numbers, rows: list[Any]) -> ef.Dataflow:
    flow = ef.Dataflow("windows")
    read(flow, numbers).key_by("key").window(ef.tumbling("10s")).aggregate(n=ef.count()).write(ef.to_list(rows))
    return flow


def shown(rows: list[Any]) -> list[tuple[str, int, int]]:
    return sorted((row["key"], round(row["window_start"].timestamp()), row["n"]) for row in rows)


def test_stop_emits_no_window_that_is_open(tmp_path):
    rows: list[Any] = []
    numbers = Numbers(25)
    stopped(windows(numbers, rows), tmp_path, numbers)
    assert shown(rows) == [("a", 0, 5), ("a", 10, 5), ("b", 0, 5), ("b", 10, 5)]


def test_a_run_that_goes_on_from_the_last_checkpoint_repeats_and_loses_no_window(tmp_path):
    rows: list[Any] = []
    numbers = Numbers(25)
    stopped(windows(numbers, rows), tmp_path, numbers)
    numbers.go_on(20)
    stopped(windows(numbers, rows), tmp_path, numbers, from_savepoint=last_checkpoint(tmp_path, "windows"))
    assert shown(rows) == sorted((key, start, 5) for key in "ab" for start in (0, 10, 20, 30))


def test_three_runs_write_each_row_once_into_a_list(tmp_path):
    rows: list[Any] = []
    numbers = Numbers(0)
    newest = None
    for _ in range(3):
        numbers.go_on(7)
        flow = ef.Dataflow("numbers")
        read(flow, numbers).write(ef.to_list(rows))
        stopped(flow, tmp_path, numbers, from_savepoint=newest)
        newest = last_checkpoint(tmp_path, "numbers")
    assert [row["n"] for row in rows] == list(range(21))


def test_two_runs_write_each_window_once_into_parquet_files(tmp_path):
    numbers, newest = Numbers(25), None
    for _ in range(2):
        flow = ef.Dataflow("files")
        counts = read(flow, numbers).key_by("key").window(ef.tumbling("10s")).aggregate(n=ef.count())
        counts.write(ef.write_parquet(tmp_path / "out", append=True))
        stopped(flow, tmp_path / "checkpoints", numbers, from_savepoint=newest)
        newest = last_checkpoint(tmp_path / "checkpoints", "files")
        numbers.go_on(20)
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert shown(rows) == sorted((key, start, 5) for key in "ab" for start in (0, 10, 20, 30))


def test_drain_emits_open_windows_as_the_end_of_the_stream_does(tmp_path):
    rows: list[Any] = []
    numbers = Numbers(25)
    job = started(windows(numbers, rows), tmp_path)
    numbers.reached(25)
    job.stop(drain=True)
    job.wait(PATIENCE)
    assert shown(rows) == sorted((key, start, n) for key in "ab" for start, n in ((0, 5), (10, 5), (20, 3 if key == "a" else 2)))


def test_stop_without_a_checkpoint_folder_writes_what_is_due_and_warns(caplog):
    rows: list[Any] = []
    numbers = Numbers(25)
    stopped(windows(numbers, rows), None, numbers)
    assert shown(rows) == [("a", 0, 5), ("a", 10, 5), ("b", 0, 5), ("b", 10, 5)]
    assert "job `windows` stops without a checkpoint folder: what its operators hold, such as open windows, is discarded" in caplog.text


def sessions(stream: ef.Stream) -> ef.Stream:
    return stream.key_by("key").window(ef.session("5s")).aggregate(n=ef.count())


def in_hundreds(stream: ef.Stream) -> ef.Stream:
    return stream.key_by("key").window(ef.rows(100)).aggregate(n=ef.count())


def finals(stream: ef.Stream) -> ef.Stream:
    return stream.key_by("key").aggregate(n=ef.count(), emit="final")


class Reminders(ef.KeyedFunction):
    """Emits a reminder an hour after a key's first row."""

    seen = ef.value_state(default=0)

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        if not self.seen:
            context.timer(context.time + timedelta(hours=1))
        self.seen += 1

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Any:
        yield {"key": key, "rows": int(self.seen)}


def reminders(stream: ef.Stream) -> ef.Stream:
    return stream.key_by("key").process(Reminders())


def unmatched(stream: ef.Stream) -> ef.Stream:
    never = stream.filter(lambda row: row["n"] < 0)
    return stream.key_by("key").join(never.key_by("key"), ef.between("0s", "1h"), how="left")


@pytest.mark.parametrize("operators", [sessions, in_hundreds, finals, reminders, unmatched], ids=lambda function: function.__name__)
def test_stop_emits_nothing_that_is_not_due(operators, tmp_path):
    rows: list[Any] = []
    numbers = Numbers(20)
    flow = ef.Dataflow("pending")
    operators(read(flow, numbers)).write(ef.to_list(rows))
    stopped(flow, tmp_path, numbers)
    assert rows == []


def test_a_reminder_that_was_pending_comes_in_the_next_run(tmp_path):
    rows: list[Any] = []
    numbers = Numbers(20)

    def flow() -> ef.Dataflow:
        made = ef.Dataflow("reminders")
        reminders(read(made, numbers)).write(ef.to_list(rows))
        return made

    stopped(flow(), tmp_path, numbers)
    job = started(flow(), tmp_path, from_savepoint=last_checkpoint(tmp_path, "reminders"))
    job.stop(drain=True)
    job.wait(PATIENCE)
    assert sorted((row["key"], row["rows"]) for row in rows) == [("a", 10), ("b", 10)]


def test_a_bounded_source_that_ends_before_the_stop_drains(tmp_path):
    rows: list[Any] = []
    flow = ef.Dataflow("bounded")
    items = [{"key": "a", "ts": second} for second in range(25)]
    flow.read(ef.from_items(items, event_time="ts", unit="s")).key_by("key").window(ef.tumbling("10s")).aggregate(n=ef.count()).write(
        ef.to_list(rows)
    )
    job = started(flow, tmp_path).wait(PATIENCE)
    job.stop()
    assert sorted(row["n"] for row in rows) == [5, 10, 10]


def test_stop_of_a_job_that_has_just_begun_ends_it(tmp_path):
    numbers = Numbers(0)
    job = started(windows(numbers, []), tmp_path)
    job.stop()
    assert job.wait(PATIENCE).status().state.value == "finished"


def test_the_last_checkpoint_of_a_stopped_job_says_why_it_was_taken(tmp_path):
    numbers = Numbers(5)
    job = started(windows(numbers, []), tmp_path)
    numbers.reached(5)
    job.stop()
    job.wait(PATIENCE)
    assert [report.reason for report in job.checkpoints()][-2:] == ["the job stops", "the job has stopped"]
