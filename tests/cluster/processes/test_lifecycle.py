"""A job starts, ends, is ended, or loses a process: the handle's answers, without long delays."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from watching import figures_of, pid, socket_folders, until

import evenflow as ef
from evenflow.scheduler.protocol.effects import JobState


def endless(name, sink, **options):
    flow = ef.Dataflow(name)
    flow.read(ef.generate(rate=1000, every="50ms", keys=10)).key_by("key").aggregate(n=ef.count()).write(sink)
    return flow.run(**options)


def kill(job, actor):
    os.kill(pid(job, actor), signal.SIGKILL)


@pytest.mark.first
def test_a_finished_job_still_shows_its_status_and_metrics():
    flow, rows = ef.Dataflow("finishing"), []
    flow.read(ef.generate(total=1000, keys=10)).key_by("key").aggregate(n=ef.count(), emit="final").write(ef.to_list(rows))
    job = flow.run().wait("60s")
    assert job.status().state is JobState.FINISHED
    assert job.status().workers == ("generate-0", "aggregate-0")
    assert job.metrics()[0].rows_in == 1000
    assert job.metrics_url is None
    assert sum(row["n"] for row in rows) == 1000
    assert repr(job) == "<Job 'finishing' finished>"


def test_a_job_of_the_same_name_can_follow_at_once():
    for _ in range(2):
        flow, rows = ef.Dataflow("again"), []
        flow.read(ef.from_items([1, 2, 3])).write(ef.to_list(rows))
        flow.run().wait("60s")
        assert rows == [{"item": 1}, {"item": 2}, {"item": 3}]


@pytest.mark.first
def test_a_running_job_is_stopped_cancelled_and_not_doubled(tmp_path):
    job = endless("running", ef.write_parquet(tmp_path / "out"), config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None)))
    with pytest.raises(ef.JobTimeoutError, match="job `running` has not ended within 10ms; it is running"):
        job.wait("10ms")
    with pytest.raises(ef.RequestError, match=r"a job `running` is running: stop it with ef.connect\(.running.\).stop\(\)"):
        endless("running", ef.to_list([]))
    until(lambda: figures_of(job, "aggregate")[0].rows_in > 0, "the job has taken rows")
    job.stop(drain=True)
    assert job.wait("60s").status().state is JobState.FINISHED
    committed = ef.Dataflow("check")
    rows = []
    committed.read(ef.read_parquet(tmp_path / "out")).key_by("key").aggregate(n=ef.max("n"), emit="final").write(ef.to_list(rows))
    committed.run(runtime="local").wait()
    taken, written = (sum(f.rows_in for f in figures_of(job, "generate")), sum(row["n"] for row in rows))
    assert taken == written > 0


def test_a_cancelled_job_commits_nothing_more_and_is_gone(tmp_path):
    job = endless("cancelled", ef.write_parquet(tmp_path / "out"), config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval=None)))
    until(lambda: figures_of(job, "aggregate")[0].rows_in > 0, "the job has taken rows")
    job.cancel()
    assert job.wait("60s").status().state is JobState.CANCELLED
    assert list((tmp_path / "out").iterdir()) == []


def test_a_worker_stuck_in_a_users_function_does_not_keep_a_cancelled_job():
    def stuck(row):
        import threading

        threading.Event().wait(300)

    flow = ef.Dataflow("stuck")
    flow.read(ef.from_items([1])).map(stuck).write(ef.to_list([]))
    job = flow.run()
    job.cancel()
    assert job.wait("60s").status().state is JobState.CANCELLED


@pytest.mark.first
def test_a_killed_worker_fails_the_job_by_its_name():
    job = endless("bereft", ef.to_list([]), parallelism=2)
    kill(job, "aggregate-1")
    with pytest.raises(ef.JobError, match=r"job `bereft`: worker aggregate-1, which runs .*, is gone: its process ended unexpectedly"):
        job.wait("60s")


def test_a_killed_coordinator_fails_the_job_and_a_later_job_sweeps_the_sockets_that_it_left(folder):
    job = endless("headless", ef.to_list([]), config=ef.JobConfig(worker=ef.WorkerConfig(keep="0s")))
    processes = [pid(job, actor) for actor in ("coordinator", *job.status().workers)]
    kill(job, "coordinator")
    with pytest.raises(ef.JobError, match="job `headless`: its coordinator was lost"):
        job.wait("60s")
    assert job.status().state is JobState.FAILED
    until(lambda: not any(map(psutil.pid_exists, processes)), "its processes are gone, which still tidied up")
    left = socket_folders(folder)
    for path in [file for left_folder in left for file in left_folder.iterdir()] + left:
        os.utime(path, (0, 0))
    job = endless("living", ef.to_list([]))
    until(lambda: len(socket_folders(folder)) == 1 and set(left).isdisjoint(socket_folders(folder)), "the old folder is removed")
    job.cancel()
    job.wait("60s")


def test_workers_that_find_no_room_are_named():
    with pytest.raises(ef.ClusterError, match=r"generate-0.* did not start within 2s; is there room in the cluster"):
        endless("homeless", ef.to_list([]), config=ef.JobConfig(worker=ef.WorkerConfig(cpus=1000, start_timeout="2s")))


@pytest.mark.first
def test_a_job_of_an_unknown_name_is_an_error():
    with pytest.raises(ef.JobError, match="no job `unknown` runs on this cluster; running: none"):
        ef.connect("unknown")
