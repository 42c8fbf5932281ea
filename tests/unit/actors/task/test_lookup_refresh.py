"""A lookup with `refresh=` reads its table again in the background, and replaces it between two batches."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from patience import patience

import evenflow as ef
from evenflow.actors.task.background_work import BackgroundThreads
from evenflow.actors.task.pacing import Pacing
from evenflow.actors.task.task_interpreter import TaskInterpreter
from evenflow.actors.task.task_ports import TaskPorts
from evenflow.engine.batch import Batch
from evenflow.engine.protocol.effects import OperatorProblem, WorkOutcome
from evenflow.scheduler.protocol.messages import Failed
from evenflow.testing.simulation.workers import SimulatedMeter

PATIENCE = patience(30)


class Ports:
    """Ports that record the task's output and reports, and do background work on demand."""

    def __init__(self):
        self.time = 0.0
        self.reports: list[Any] = []
        self.rows: list[dict[str, Any]] = []
        self.wanted: list[tuple[int, Any]] = []
        self.done: list[tuple[int, WorkOutcome]] = []

    def send(self, channel, element):
        if isinstance(element, Batch):
            self.rows += element.to_rows()

    def consumed(self, channel, batch):
        pass

    def now(self):
        return self.time

    def timestamp(self):
        return int(self.time * 1e9)

    def begin(self, position, run):
        self.wanted.append((position, run))

    def take(self):
        done, self.done = self.done, []
        return done

    def close(self):
        pass

    def work(self):
        """Do the pending background work."""
        wanted, self.wanted = self.wanted, []
        for position, run in wanted:
            try:
                self.done.append((position, WorkOutcome(run())))
            except Exception as error:  # noqa: BLE001 -- as a thread does it
                self.done.append((position, WorkOutcome(error=error)))


class Tables:
    """A function that returns one table after the other, and raises those that are errors."""

    def __init__(self, *tables):
        self.tables = list(tables)

    def __call__(self):
        table = self.tables.pop(0) if len(self.tables) > 1 else self.tables[0]
        if isinstance(table, BaseException):
            raise table
        return table


class Looking:
    """A task that polls a row with key `a` on demand, and looks it up."""

    def __init__(self, *tables, refresh="10s", **options):
        flow = ef.Dataflow("looking")
        rows = flow.read(ef.from_items([{"k": "a"}] * 100)).parallelism(1)
        looked = rows.lookup(Tables(*tables), on="k", refresh=refresh, **options).named("look")
        looked.map(dict).parallelism(2).write(ef.to_list([]))
        spec = next(task for task in flow.plan(config=ef.JobConfig()).tasks if task.name == "from_items-0")
        self.ports = Ports()
        self.task = TaskInterpreter(
            spec, TaskPorts(self.ports, self.ports, self.ports.reports.append, Pacing(0.0), SimulatedMeter, background=self.ports)
        )
        self.task.open()

    def look(self, time: float):
        """Return the result of the lookup at this time."""
        self.ports.time = time
        self.task.poll(1)
        self.task.idle()
        rows, self.ports.rows = self.ports.rows, []
        return [{name: value for name, value in row.items() if name != "k"} for row in rows]

    @property
    def problems(self):
        return [report.problem for report in self.ports.reports if isinstance(report, OperatorProblem)]


def table(value, **more):
    return pa.table({"k": ["a"], "v": [value], **{name: [each] for name, each in more.items()}})


def test_new_table_counts_from_the_batch_after_it_was_read():
    looking = Looking(table(1), table(2), table(3))
    assert looking.look(0) == looking.look(9) == [{"v": 1}]
    assert not looking.ports.wanted
    assert looking.look(10) == [{"v": 1}]
    assert len(looking.ports.wanted) == 1, "asked for, and not waited for"
    assert looking.look(12) == [{"v": 1}]
    looking.ports.work()
    assert looking.look(13) == [{"v": 2}]
    assert looking.look(22) == [{"v": 2}]
    assert not looking.ports.wanted, "an interval begins when the table is there"
    looking.look(23.5)
    looking.ports.work()
    assert looking.look(24) == [{"v": 3}]
    assert not looking.problems


def test_table_is_read_again_while_no_rows_come():
    looking = Looking(table(1), table(2))
    for time in (0.0, 5.0, 11.0):
        looking.ports.time = time
        looking.task.idle()
    assert len(looking.ports.wanted) == 1


WRONG = {
    "error of the function": (OSError("the disk is gone"), r"its table can't be read: OSError: the disk is gone"),
    "no table": ([1], "returned a list: a function of a lookup returns a pyarrow Table"),
    "key column that is gone": (pa.table({"v": [1]}), "the table has no column `k`"),
    "column that is gone": (pa.table({"k": ["a"]}), "the table has no column `v` any more; there are: k"),
    "another type": (table("one"), "the table's column `v` is string now and was int64: its type must stay"),
    "another type of the key": (pa.table({"k": [1], "v": [1]}), "the table's column `k` is int64 now and was string"),
}


@pytest.mark.parametrize(("wrong", "problem"), [pytest.param(*case, id=name) for name, case in WRONG.items()])
def test_table_that_can_not_take_its_place_leaves_the_old_one_and_is_reported(wrong, problem):
    looking = Looking(table(1), wrong, table(3))
    looking.look(0)
    looking.look(10)
    looking.ports.work()
    assert looking.look(11) == [{"v": 1}]
    (said,) = looking.problems
    assert said.startswith("the table could not be read again, so the previous one remains in use: ")
    assert problem in said
    looking.look(21.5)
    looking.ports.work()
    assert looking.look(22) == [{"v": 3}], "it is tried again"
    assert not looking.task.over


def test_key_that_comes_twice_is_an_error_of_the_new_table_too():
    looking = Looking(table(1), pa.table({"k": ["a", "a"], "v": [1, 2]}), unique=True)
    looking.look(0)
    looking.look(10)
    looking.ports.work()
    assert looking.look(11) == [{"v": 1}]
    assert "several rows with {'k': 'a'}" in looking.problems[0]


def test_more_columns_change_no_result_and_nulls_fit_any_type():
    looking = Looking(table(1), table(2, w="new"), pa.table({"k": ["a"], "v": pa.nulls(1)}))
    looking.look(0)
    looking.look(10)
    looking.ports.work()
    assert looking.look(11) == [{"v": 2}]
    looking.look(21.5)
    looking.ports.work()
    assert looking.look(22) == [{"v": None}]
    assert not looking.problems


def test_reading_that_takes_too_long_is_reported_once_and_no_other_begins():
    looking = Looking(table(1), table(2))
    for time in (0.0, 10.0, 15.0, 21.0, 35.0):
        assert looking.look(time) == [{"v": 1}]
    assert looking.problems == ["reading the table takes longer than refresh=10 s, so the previous one remains in use until it is read"]
    assert len(looking.ports.wanted) == 1
    looking.ports.work()
    assert looking.look(36) == [{"v": 2}]


@pytest.mark.parametrize("wrong", [OSError("no disk"), ef.ConnectorError("no file at x")])
def test_first_reading_that_fails_ends_the_job_and_names_the_operator(wrong):
    looking = Looking(wrong)
    (failed,) = looking.ports.reports
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, ef.ConnectorError)
    assert "operator `look`: " in str(failed.error)
    assert str(wrong) in str(failed.error)


def ended():
    """Wait until the background work has ended."""
    for thread in threading.enumerate():
        if thread.name == "task-0 background":
            thread.join(PATIENCE)


def test_work_runs_in_another_thread_and_the_end_does_not_wait_for_it():
    begun, release, background = threading.Event(), threading.Event(), BackgroundThreads("task-0")

    def work():
        begun.set()
        assert release.wait(PATIENCE)
        return threading.current_thread()

    background.begin(0, work)
    assert begun.wait(PATIENCE)
    assert list(background.take()) == []
    release.set()
    ended()
    ((position, outcome),) = background.take()
    assert position == 0
    assert outcome.result is not threading.current_thread()
    background.begin(1, lambda: 1 / 0)
    ended()
    ((position, outcome),) = background.take()
    assert isinstance(outcome.error, ZeroDivisionError)
    release.clear()
    background.begin(2, work)
    background.close()
    release.set()
    ended()
    assert not list(background.take())
