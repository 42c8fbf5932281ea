"""Programs whose jobs fail, start again or don't, are too large for the machine, or ask for settings that do nothing."""

from __future__ import annotations

import json
import logging
import threading
from datetime import timedelta

import pytest
from patience import patience

import evenflow as ef
from evenflow.scheduler.protocol.requests import ShowView

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


class Server:
    """A store of lines that a user's sink commits to; it refuses the first `times` commits with `error`."""

    def __init__(self, error, times):
        self.error, self.times, self.lines = error, times, {}
        self.refused = threading.Event()

    def commit(self, checkpoint, lines):
        if self.times:
            self.times -= 1
            self.refused.set()
            raise self.error
        self.lines.setdefault(checkpoint, lines)


SERVERS: dict[str, Server] = {}
"""Servers by the name of the sink: sinks are copied into workers."""


class ServerSink(ef.Sink):
    """A sink as a user writes one."""

    name, retractable = "server", True

    def __init__(self, server):
        self.server = server

    def writer(self, index, parallelism):
        return ServerWriter()

    def commit(self, checkpoint, committables):
        SERVERS[self.server].commit(checkpoint, [line for part in committables for line in json.loads(part)])
        return []

    def retract(self, after):
        server = SERVERS[self.server]
        server.lines = {number: lines for number, lines in server.lines.items() if number <= after}
        return []


class ServerWriter(ef.SinkWriter):
    def __init__(self):
        self.rows = []

    def write(self, batch):
        self.rows += batch.rows.to_pylist()

    def prepare(self, checkpoint):
        rows, self.rows = self.rows, []
        return [json.dumps(rows)]


def saving(tmp_path, **settings):
    return ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=None), **settings)


def into_a_server(name, error, times):
    SERVERS[name] = Server(error, times)
    flow = ef.Dataflow(name)
    flow.read(ef.from_items([1, 2, 3])).map(lambda row: {"n": row["item"] * 10}).write(ServerSink(name))
    return flow


def committed(name):
    return sorted(row["n"] for lines in SERVERS[name].lines.values() for row in lines)


def test_a_server_that_is_away_for_two_commits_costs_two_restarts_and_a_log_line_each(tmp_path, caplog):
    flow = into_a_server("away", ConnectionResetError(104, "Connection reset by peer"), times=2)
    with caplog.at_level(logging.WARNING):
        job = flow.run(runtime="local", config=saving(tmp_path, restart=ef.RestartConfig("fixed", delay=0))).wait("60s")
    assert committed("away") == [10, 20, 30]
    assert (job.status().state.value, job.status().restarts, job.status().problems) == ("finished", 2, ())
    cause = "JobFailedError: sink `server` could not commit checkpoint 1: ConnectionResetError: [Errno 104] Connection reset by peer"
    assert [record.getMessage() for record in caplog.records] == [
        f"job `away`: restart 1 of at most 10 in a row, in 0 s: {cause}",
        f"job `away`: restart 2 of at most 10 in a row, in 0 s: {cause}",
    ]


def test_a_job_that_restarts_shows_the_error_the_count_and_the_next_try(tmp_path):
    flow = into_a_server("waiting", TimeoutError("no answer"), times=1)
    job = flow.run(runtime="local", config=saving(tmp_path, restart=ef.RestartConfig("fixed", delay="1h")))
    assert SERVERS["waiting"].refused.wait(patience(60))
    status = next(found for found in iter(job.status, None) if found.state is ef.JobState.RESTARTING)
    assert "sink `server` could not commit checkpoint 1: TimeoutError: no answer" in str(status.error)
    assert status.restarts == 1
    assert 3500 < status.next_try <= 3600
    assert status.problems == (f"restart 1 of at most 10 in a row: JobFailedError: {status.error}",)
    assert "restarting" in str(status)
    assert ", 1 restart, the next try in 3" in str(status)
    job.cancel()
    job.wait("60s")


def test_a_server_that_stays_away_ends_the_job_after_the_restarts_that_are_allowed(tmp_path):
    flow = into_a_server("gone", ConnectionResetError(104, "Connection reset by peer"), times=99)
    job = flow.run(runtime="local", config=saving(tmp_path, restart=ef.RestartConfig("fixed", delay=0, most=3)))
    with pytest.raises(ef.JobFailedError, match="sink `server` could not commit checkpoint 1: ConnectionResetError") as raised:
        job.wait("60s")
    assert "The job did not start again: RestartConfig(most=3) allows for no more restarts in a row." in raised.value.__notes__
    assert SERVERS["gone"].times == 99 - 4


def test_a_sink_that_may_not_write_ends_the_job_at_the_first_attempt(tmp_path):
    flow = into_a_server("denied", PermissionError(13, "Permission denied", "/srv/out"), times=99)
    job = flow.run(runtime="local", config=saving(tmp_path, restart=ef.RestartConfig("fixed", delay=0)))
    with pytest.raises(ef.JobFailedError, match="Permission denied: '/srv/out'") as raised:
        job.wait("60s")
    remedy = "give the user that runs Ray access to /srv/out on every node"
    assert raised.value.__notes__ == [f"The job did not start again: another attempt would meet the same error: {remedy}."]
    assert SERVERS["denied"].times == 98


def test_a_missing_folder_for_state_ends_the_job_at_the_first_attempt(tmp_path, caplog):
    flow = ef.Dataflow("homeless")
    rows = flow.read(ef.from_items([{"k": 1}, {"k": 2}]))
    rows.key_by("k").aggregate(n=ef.count()).named("counts").write(ef.to_list([]))
    state = ef.StateConfig("lmdb", dir=str(tmp_path / "none"))
    job = flow.run(runtime="local", config=saving(tmp_path, state=state, restart=ef.RestartConfig("fixed", delay=0, most=1000)))
    with pytest.raises(ef.StateBackendError, match=rf"operator `counts` can't store its state in {tmp_path}/none: ") as raised:
        job.wait("60s")
    assert f"create {tmp_path}/none on every node" in raised.value.__notes__[0]
    assert job.status().restarts == 0
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["job `homeless` has failed and is not restarted"]


def test_a_module_that_is_missing_where_the_job_runs_ends_it_with_the_modules_name(tmp_path):
    def parse(row):
        import surely_no_such_module

        return surely_no_such_module.parse(row)

    flow = ef.Dataflow("unimported")
    flow.read(ef.from_items([1])).map(parse).write(ef.to_list([]))
    job = flow.run(runtime="local", config=saving(tmp_path))
    with pytest.raises(ef.RecordError, match="No module named 'surely_no_such_module'"):
        job.wait("60s")
    assert job.status().restarts == 0


def test_a_record_that_a_function_refuses_ends_the_job_which_says_why_it_does_not_restart(tmp_path):
    flow = ef.Dataflow("refused")
    flow.read(ef.from_items(["1", "x"])).map(lambda row: {"n": int(row["item"])}).named("parse").write(ef.to_list([]))
    job = flow.run(runtime="local", config=saving(tmp_path))
    with pytest.raises(ef.RecordError, match="ValueError: invalid literal for int") as raised:
        job.wait("60s")
    (note,) = raised.value.__notes__
    assert note.startswith("The job did not start again: another attempt would meet the same error: correct the function or the data")


def test_a_job_without_a_checkpoint_folder_fails_with_the_error_alone():
    flow = into_a_server("unsaved", ConnectionResetError(104, "Connection reset by peer"), times=1)
    with pytest.raises(ef.JobFailedError, match="sink `server` could not commit checkpoint 1") as raised:
        flow.run(runtime="local").wait("60s")
    assert not hasattr(raised.value, "__notes__")


def chained(maps, rows):
    flow = ef.Dataflow("long")
    stream = flow.read(ef.from_items([1, 2, 3]))
    for _ in range(maps):
        stream = stream.map(lambda row: {"item": row["item"] + 1})
    stream.write(ef.to_list(rows))
    return flow


@pytest.mark.parametrize("maps", [1, 63, 64, 400, 1000])
def test_a_chain_of_any_number_of_maps_runs_and_is_explained(maps):
    rows = []
    flow = chained(maps, rows)
    assert f"map_{maps}" in flow.explain() or maps == 1
    flow.run(runtime="local").wait("60s")
    assert rows == [{"item": maps + 1}, {"item": maps + 2}, {"item": maps + 3}]


def test_a_long_chain_before_windows_loses_and_delays_no_row():
    rows = []
    flow = ef.Dataflow("long-windows")
    items = [{"user": n % 2, "at": n * 100} for n in range(40)]
    stream = flow.read(ef.from_items(items)).map(lambda row: row)
    for _ in range(150):
        stream = stream.filter(lambda row: True)
    timed = stream.with_time("at")
    for _ in range(150):
        timed = timed.map(lambda row: row)
    timed.key_by("user").window(ef.tumbling("1s")).aggregate(n=ef.count()).select("user", "n").write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert sorted((row["user"], row["n"]) for row in rows) == [(0, 5)] * 4 + [(1, 5)] * 4


@pytest.mark.parametrize(
    ("parallelism", "line"),
    [
        (1, "2 workers and a coordinator: on Ray about 465 MB of memory, without state"),
        (60, "120 workers and a coordinator: on Ray about 18.8 GB of memory, without state"),
    ],
)
def test_explain_says_how_many_workers_and_how_much_memory_a_job_asks_for(parallelism, line):
    flow = ef.Dataflow("sized")
    flow.read(ef.generate(total=10, keys=2)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
    assert f"  {line}\n" in flow.explain(parallelism)


@pytest.mark.parametrize(
    ("worker", "line"),
    [
        ({}, "4 CPUs reserved on a Ray cluster that you name (WorkerConfig(cpus=...)), none on this machine"),
        ({"cpus": 0.25}, "1 CPU reserved on Ray"),
        ({"cpus": 0}, "no CPUs reserved on Ray"),
    ],
)
def test_explain_says_how_many_cpus_a_job_reserves(worker, line):
    flow = ef.Dataflow("reserved")
    flow.read(ef.generate(total=10, keys=2)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
    assert f"  {line}\n" in flow.explain(2, ef.JobConfig(worker=ef.WorkerConfig(**worker)))


def test_explain_says_what_an_operator_reserves_for_each_of_its_workers():
    flow = ef.Dataflow("reserved")
    flow.read(ef.generate(total=10, keys=2)).map(dict).named("model").resources(cpus=2, gpus=1, memory="4GB").write(ef.to_list([]))
    said = flow.explain(2)
    assert "  model x 2 (each 2 CPUs, 1 GPU, 4 GB of memory): model -> to_list\n" in said
    named = "6 CPUs, 2 GPUs, 8 GB of memory reserved on a Ray cluster that you name (WorkerConfig(cpus=...))"
    assert f"  {named}, 4 CPUs, 2 GPUs, 8 GB of memory on this machine\n" in said


def test_a_relative_folder_for_state_is_below_the_folder_of_the_program_and_not_of_the_worker(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flow = ef.Dataflow("relative")
    flow.read(ef.from_items([{"k": 1}])).key_by("k").aggregate(n=ef.count()).write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(state=ef.StateConfig("lmdb", dir="state")))
    with pytest.raises(ef.StateBackendError, match=f"can't store its state in {tmp_path}/state: "):
        job.wait("60s")
    (tmp_path / "state").mkdir()
    rows = []
    flow = ef.Dataflow("relative")
    flow.read(ef.from_items([{"k": 1}])).key_by("k").aggregate(n=ef.count()).write(ef.to_list(rows))
    flow.run(runtime="local", config=ef.JobConfig(state=ef.StateConfig("lmdb", dir="state"))).wait("60s")
    assert rows == [{"k": 1, "n": 1}]


def test_settings_of_the_autoscaler_hold_for_the_policy_that_is_switched_on_and_switch_none_on():
    flow = ef.Dataflow("unscaled")
    flow.read(ef.generate(rate=100, keys=2)).key_by("key").aggregate(n=ef.count()).named("counts").write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(autoscale=ef.AutoscaleConfig(interval="1s", max_parallelism=3)))
    assert job.decisions() == []
    with pytest.raises(ef.RequestError, match="latency_target"):
        job.autoscaler("pid")
    job.autoscaler("ds2", mode="advise")
    job.cancel()
    job.wait("60s")


def test_running_job_is_scaled_by_a_policy_with_settings_of_its_own():
    flow = ef.Dataflow("scaled")
    flow.read(ef.generate(rate=100, keys=2)).key_by("key").aggregate(n=ef.count()).named("counts").write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(autoscale=ef.AutoscaleConfig(ef.Ds2(min_change=2), mode="advise")))

    def own():
        return job._runtime.ask(ShowView()).own_settings

    assert own() == {"ds2": {"min_change": 2}}
    job.autoscaler(ef.ThresholdPolicy(scale_down_delay=timedelta(minutes=5)), mode="advise")
    assert own() == {"ds2": {"min_change": 2}, "threshold": {"scale_down_delay": 300.0}}
    job.autoscaler("ds2", mode="advise")
    assert own() == {"ds2": {"min_change": 2}}
    job.autoscaler(ef.Ds2(), mode="advise")
    assert own() == {"ds2": {}}
    job.cancel()
    job.wait("60s")
