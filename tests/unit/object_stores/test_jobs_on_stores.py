"""Jobs whose checkpoints are in object stores. The store is out of reach for a while, loses replies, or refuses."""

from __future__ import annotations

import threading
from collections import Counter

import fsspec
import pyarrow.parquet as pq
import pytest
from every_store import every_store
from patience import patience
from store_proxy import Fault

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
    assert gate.reached.wait(patience(30))
    job.checkpoint()
    return job


def numbers(out):
    return sorted(pq.read_table(out)["n"].to_pylist())


def failed_checkpoints(job):
    return [report for report in job.checkpoints() if report.problem is not None]


def until(condition, bound=60.0):
    pause = threading.Event()
    for _ in range(int(patience(bound) / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    pytest.fail(f"not within {bound} s")


@pytest.mark.slow
@every_store
def test_job_outlives_a_store_that_is_out_of_reach(store, url, tmp_path):
    gate = Gate()
    job = midway(url, tmp_path / "out", gate)
    store.fault = Fault("cut")
    gate.open.set()
    until(lambda: len(failed_checkpoints(job)) >= 1)
    status = job.status()
    assert status.state.value in ("running", "restarting")
    told = [str(status.error), *status.problems, *(report.problem for report in failed_checkpoints(job))]
    assert any(f"{url}/jobs" in text for text in told), "the report names the store, or the status if the job went back"
    store.fault = Fault("none", times=0)
    job.wait("60s")
    assert numbers(tmp_path / "out") == list(range(TOTAL))


@pytest.mark.slow
def test_clearing_up_that_fails_ends_no_job(store, url, tmp_path):
    gate = Gate()
    job = midway(url, tmp_path / "out", gate)
    store.fault = Fault("cut", lambda request: "manifest" in request.name or request.kind == "remove")
    until(lambda: len(failed_checkpoints(job)) >= 1)
    store.fault = Fault("none", times=0)
    gate.open.set()
    job.wait("60s")
    assert numbers(tmp_path / "out") == list(range(TOTAL))


@pytest.mark.slow
@every_store
def test_job_whose_manifests_replies_are_lost_has_no_failed_checkpoint(store, url, tmp_path):
    gate = Gate()
    job = midway(url, tmp_path / "out", gate)
    store.fault = Fault("lost", lambda request: request.kind == "create" and "/manifest" in request.name, times=2)
    job.checkpoint()
    gate.open.set()
    job.wait("60s")
    assert store.fault.met
    assert failed_checkpoints(job) == []
    assert numbers(tmp_path / "out") == list(range(TOTAL))


@every_store
def test_job_is_continued(store, url, tmp_path):
    job = midway(url, tmp_path / "out", Gate())
    job.cancel()
    job.wait("30s")
    gate = Gate()
    gate.open.set()
    flow_of(gate, tmp_path / "out").run(runtime="local", config=settings(url), resume="required").wait("60s")
    assert numbers(tmp_path / "out") == list(range(TOTAL))
    assert not [path for path in fsspec.filesystem(store.protocol).find(url) if "/check-" in path]


@pytest.mark.slow
@every_store
def test_job_that_is_stopped_with_a_savepoint_goes_on_from_it_and_keeps_few_checkpoints(store, url, tmp_path):
    saved, gate = f"{url}/saved", Gate()
    job = midway(f"{url}/first", tmp_path / "first", gate)
    for _ in range(4):
        job.checkpoint()
    files, root = fsspec.core.url_to_fs(f"{url}/first/jobs", use_listings_cache=False)
    kept = {path.split("/")[-2] for path in files.find(root) if "/checkpoint-" in path}
    assert 1 <= len(kept) <= 4, "three are kept, and one may be under way"
    job.stop(savepoint=saved)
    refused = midway(f"{url}/other", tmp_path / "other", Gate())
    with pytest.raises(ef.RequestError, match=f"{saved} is not empty, it has .*manifest"):
        refused.stop(savepoint=saved)
    rest = flow_of(gate, tmp_path / "second")
    gate.open.set()
    rest.run(runtime="local", config=settings(f"{url}/second"), from_savepoint=saved).wait("60s")
    assert sorted(numbers(tmp_path / "first") + numbers(tmp_path / "second")) == list(range(TOTAL))


@every_store
def test_job_is_not_started_on_a_store_without_the_create_only_condition(store, url, tmp_path):
    store.fault = Fault("careless")
    with pytest.raises(ef.StateError, match="can't keep two runs of a job apart: use one that honours it"):
        flow_of(Gate(), tmp_path / "out").run(runtime="local", config=settings(url))


@every_store
def test_job_is_not_started_on_a_store_that_denies(store, url, tmp_path):
    store.fault = Fault("denied")
    with pytest.raises(ef.StateError, match=rf"{url}/jobs: terms/check-.*: (PermissionError|HttpResponseError|OSError: Forbidden)"):
        flow_of(Gate(), tmp_path / "out").run(runtime="local", config=settings(url))


@every_store
def test_job_is_not_started_in_a_bucket_that_is_not_there(store, tmp_path):
    with pytest.raises(
        ef.StateError, match=rf"{store.protocol}://nowhere/ck/jobs: .*(The specified (bucket|container) does not|b/nowhere/o)"
    ):
        flow_of(Gate(), tmp_path / "out").run(runtime="local", config=settings(f"{store.protocol}://nowhere/ck"))


@pytest.mark.slow
@every_store
def test_run_belongs_to_one_owner(store, url, tmp_path):
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
@every_store
def test_requests_of_a_checkpoint_are_one_for_each_file_and_five_more(store, url):
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
        store.fault = Fault("counted")
        job.checkpoint()
        met = list(store.fault.met)
        # each sign of life, every five seconds, is an object and a look for a newer claim
        beats = sum(request.name.endswith(".beat") for request in met)
        claims = sum(request.kind == "read" and "/terms/" in request.name for request in met)
        assert 3 <= claims <= 4 + beats
        made = Counter(request.kind for request in met if "/terms/" not in request.name)
        # adlfs uploads a file as blocks and a list of them, gcsfs begins an upload and then sends its content
        blocks = {"piece": files} if store.protocol in ("abfs", "gs") else {}
        assert made.pop("look", 0) <= (store.protocol == "abfs"), "adlfs looks for the folder unless it has just listed it"
        assert +made == +Counter({"create": files + 1, "list": 1, "remove": made["remove"], **blocks})
    gate.set()
    job.wait("60s")
