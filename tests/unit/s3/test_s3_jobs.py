"""Jobs whose checkpoints are on S3, which is out of reach for a while, loses replies, or refuses."""

from __future__ import annotations

import threading
from collections import Counter

import fsspec
import pyarrow.parquet as pq
import pytest
from s3_proxy import Fault

import evenflow as ef

TOTAL = 60


class Gate:
    """A source of numbers: those from `until` on wait until the gate is open."""

    def __init__(self, until=TOTAL // 2):
        self.until, self.open, self.reached = until, threading.Event(), threading.Event()

    def __call__(self, partition, position):
        for n in range(position or 0, TOTAL):
            while n >= self.until and not self.open.is_set():
                self.reached.set()
                yield None
            yield {"n": n}, n + 1


def flow_of(gate, out):
    flow = ef.Dataflow("jobs")
    flow.read(ef.from_generator(gate, poll_every="1ms")).write(ef.write_parquet(out))
    return flow


def settings(url, **more):
    checkpoint = ef.CheckpointConfig(url, interval="50ms", tolerable_failures=1000)
    return ef.JobConfig(checkpoint=checkpoint, restart=ef.RestartConfig("fixed", delay="10ms", most=1000), **more)


def midway(url, out, gate):
    job = flow_of(gate, out).run(runtime="local", config=settings(url))
    assert gate.reached.wait(30)
    job.checkpoint()
    return job


def numbers(out):
    return sorted(pq.read_table(out)["n"].to_pylist())


def failed_checkpoints(job):
    return [report for report in job.checkpoints() if report.problem is not None]


def until(condition, bound=60.0):
    pause = threading.Event()
    for _ in range(int(bound / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    pytest.fail(f"not within {bound} s")


@pytest.mark.slow
def test_job_outlives_a_store_that_is_out_of_reach(s3, url, tmp_path):
    gate = Gate()
    job = midway(url, tmp_path / "out", gate)
    s3.fault = Fault("cut")
    gate.open.set()
    until(lambda: len(failed_checkpoints(job)) >= 1)
    status = job.status()
    assert status.state.value in ("running", "restarting")
    told = [str(status.error), *status.problems, *(report.problem for report in failed_checkpoints(job))]
    assert any(f"{url}/jobs" in text for text in told), "the report names the store, or the status if the job went back"
    s3.fault = Fault("none", times=0)
    job.wait("60s")
    assert numbers(tmp_path / "out") == list(range(TOTAL))


@pytest.mark.slow
def test_clearing_up_that_fails_ends_no_job(s3, url, tmp_path):
    gate = Gate()
    job = midway(url, tmp_path / "out", gate)
    s3.fault = Fault("cut", lambda method, path: "manifest" in path or method in ("DELETE", "POST"))
    until(lambda: len(failed_checkpoints(job)) >= 1)
    s3.fault = Fault("none", times=0)
    gate.open.set()
    job.wait("60s")
    assert numbers(tmp_path / "out") == list(range(TOTAL))


@pytest.mark.few(1)
def test_job_whose_manifests_replies_are_lost_has_no_failed_checkpoint(s3, url, tmp_path):
    gate = Gate()
    job = midway(url, tmp_path / "out", gate)
    s3.fault = Fault("lost", lambda method, path: method == "PUT" and "/manifest" in path, times=2)
    job.checkpoint()
    gate.open.set()
    job.wait("60s")
    assert s3.fault.met
    assert failed_checkpoints(job) == []
    assert numbers(tmp_path / "out") == list(range(TOTAL))


@pytest.mark.few(1)
def test_job_is_continued_from_s3(s3, url, tmp_path):
    job = midway(url, tmp_path / "out", Gate())
    job.cancel()
    job.wait("30s")
    gate = Gate()
    gate.open.set()
    flow_of(gate, tmp_path / "out").run(runtime="local", config=settings(url), resume="required").wait("60s")
    assert numbers(tmp_path / "out") == list(range(TOTAL))
    assert not [path for path in fsspec.filesystem("s3").find(url) if "/check-" in path]


def test_job_is_not_started_on_a_store_without_the_create_only_condition(s3, url, tmp_path):
    s3.fault = Fault("careless")
    with pytest.raises(ef.StateError, match="If-None-Match"):
        flow_of(Gate(), tmp_path / "out").run(runtime="local", config=settings(url))


def test_job_is_not_started_on_a_store_that_denies(s3, url, tmp_path):
    s3.fault = Fault("denied")
    with pytest.raises(ef.StateError, match=rf"{url}/jobs: terms/check-.*: PermissionError"):
        flow_of(Gate(), tmp_path / "out").run(runtime="local", config=settings(url))


def test_job_is_not_started_in_a_bucket_that_is_not_there(s3, tmp_path):
    with pytest.raises(ef.StateError, match=r"s3://nowhere/ck/jobs: The specified bucket does not exist"):
        flow_of(Gate(), tmp_path / "out").run(runtime="local", config=settings("s3://nowhere/ck"))


@pytest.mark.slow
def test_run_on_s3_belongs_to_one_owner(s3, url, tmp_path):
    job = midway(url, tmp_path / "out", Gate())
    with pytest.raises(ef.RequestError, match="job `jobs` is already running"):
        flow_of(Gate(), tmp_path / "other").run(runtime="local", config=settings(url))
    taken = flow_of(Gate(), tmp_path / "out").run(runtime="local", config=settings(url), takeover=True)
    with pytest.raises(ef.JobFailedError, match="has taken this job over"):
        job.wait("30s")
    taken.cancel()
    taken.wait("30s")
    assert numbers(tmp_path / "out") == list(range(TOTAL // 2))


@pytest.mark.slow
def test_requests_of_a_checkpoint_are_one_for_each_file_and_five_more(s3, url):
    workers, total, flow, gate = 10, 2_000, ef.Dataflow("costs"), threading.Event()

    def rows(partition, position):
        for n in range(position or 0, total):
            yield {"key": n}, n + 1
        while not gate.is_set():
            yield None

    read = flow.read(ef.from_generator(rows, poll_every="1ms")).parallelism(1)
    read.key_by("key").aggregate(n=ef.count()).named("counts").parallelism(workers).write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(url, interval=None)))
    until(lambda: sum(each.rows_in for each in job.metrics() if each.operator == "counts") == total)
    for files in (workers, 0, 0, 0):  # only the first has changed state
        s3.fault = Fault("counted", lambda method, path: not path.endswith(".beat"))
        job.checkpoint()
        made = Counter(method if "list-type" not in path else "LIST" for method, path in map(str.split, s3.fault.met))
        assert made == {"PUT": files + 1, "LIST": 1, "GET": 3} | ({"DELETE": 1} if "DELETE" in made else {})
    gate.set()
    job.wait("60s")
