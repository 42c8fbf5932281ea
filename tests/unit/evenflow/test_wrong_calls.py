"""Calls of a job's handle that ask for what isn't there or can't be now: each is refused with what there is."""

from __future__ import annotations

import threading

import pytest
from patience import patience

import evenflow as ef


@pytest.fixture
def running(refused):
    """Start an unbounded job with one operator with keyed state, `counts`."""
    flow, flowing = ef.Dataflow("shop"), threading.Event()
    counts = flow.read(ef.generate(keys=10, rate=2_000)).key_by("key").aggregate(n=ef.count()).named("counts")
    counts.write(ef.to_callback(lambda row: flowing.set()))
    job = flow.run(runtime="local", config=ef.JobConfig(key_groups=16))
    assert flowing.wait(patience(60))
    yield job
    job.cancel()
    job.wait("60s")


RUNNING = {
    "rebalancing an operator that isn't there": (lambda job: job.rebalance("sums"), "has no operator `sums`; there are: generate"),
    "rebalancing by no balancer": (lambda job: job.rebalance("counts", policy="fair"), "'fair' is not a balancer: use one of hotspot"),
    "rebalancing by no strategy": (lambda job: job.rebalance("counts", strategy="teleport"), "'teleport' is not a migration strategy"),
    "rebalancing what has no state": (lambda job: job.rebalance("generate"), "`generate` has no keyed state to move; operators that have"),
    "moving nothing": (lambda job: job.migrate("counts", to=0), "`counts`: nothing to move: give groups=[...] or keys=[...]"),
    "moving a group that isn't there": (lambda job: job.migrate("counts", groups=[16], to=0), "no key group 16: its groups are 0 to 15"),
    "moving a group by its text": (lambda job: job.migrate("counts", groups=["1"], to=0), "no key group '1': its groups are 0 to 15"),
    "moving to a worker that isn't there": (lambda job: job.migrate("counts", groups=[1], to=7), "no worker 7: its 1 workers are 0 to 0"),
    "moving to a worker's text": (lambda job: job.migrate("counts", groups=[1], to="0"), "no worker '0': its 1 workers are 0 to 0"),
    "moving a list": (lambda job: job.migrate("counts", keys=[[1]], to=0), "this can't be a key"),
    "splitting a key of what is no join": (
        lambda job: job.split("counts", 1, to=[0]),
        "only joins can, and a full join or one in sessions can't",
    ),
    "splitting a key of an operator that isn't there": (lambda job: job.split("sums", 1, to=[0]), "has no operator `sums`; there are"),
    "splitting a key of two columns": (lambda job: job.split("counts", (1, 2), to=[0]), "has keys of 1 columns, and (1, 2) has 2"),
    "splitting what has no state": (lambda job: job.split("generate", 1, to=[0]), "`generate` has no keyed state to move"),
    "gathering a key that isn't split": (lambda job: job.unsplit("counts", 1), "`counts`: key 1 is not split over several workers"),
    "scaling an operator that isn't there": (lambda job: job.scale("sums", 2), "has no operator `sums`; there are: generate"),
    "scaling to nothing": (lambda job: job.scale("counts", 0), "`counts` can't have 0 workers; the least is 1"),
    "scaling to text": (lambda job: job.scale("counts", "2"), "`counts` can't have '2' workers"),
    "scaling to True": (lambda job: job.scale("counts", True), "`counts` can't have True workers"),
    "scaling beyond the key groups": (lambda job: job.scale("counts", 17), "`counts` can't have 17 workers: it has 16 key groups"),
    "waiting for text": (lambda job: job.wait("soon"), "timeout 'soon' is not a duration"),
    "a savepoint without checkpoints": (lambda job: job.savepoint("/dev/null/x"), "a savepoint needs CheckpointConfig(dir=...)"),
    "no balancer": (lambda job: job.balancer("counts", "fair"), "'fair' can't balance a job: use hotspot"),
    "no scaling policy": (lambda job: job.autoscaler("magic"), "'magic' can't scale a job: use ds2"),
    "a class as a scaling policy": (lambda job: job.autoscaler(ef.Ds2), "expected a text"),
    "a scaling policy without its goal": (lambda job: job.autoscaler(ef.PidPolicy()), "the scaling policy pid keeps a latency: say which"),
    "no mode of scaling": (lambda job: job.autoscaler("ds2", mode="try"), "mode is 'try'; expected one of act, advise"),
    "the load of an operator that isn't there": (lambda job: job.load("sums"), "has no operator `sums`; there are: generate"),
    "nodes of a job of this process": (lambda job: job.scale_out(), "runs in one process and has no nodes: run it on Ray"),
}


def test_wrong_call_is_refused_with_what_there_is_and_the_job_goes_on(running):
    for name, (call, said) in RUNNING.items():
        with pytest.raises(ef.EvenflowError) as caught:
            call(running)
        assert said in str(caught.value), name
    assert running.status().state.value == "running"


def test_job_that_has_ended_says_so(refused):
    flow, rows = ef.Dataflow("shop"), []
    flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).named("counts").write(ef.to_list(rows))
    job = flow.run(runtime="local").wait("60s")
    for call in (job.checkpoint, lambda: job.savepoint("/dev/null/x"), lambda: job.scale("counts", 2), lambda: job.rebalance("counts")):
        assert "job `shop` is finished" in str(refused(call))
    job.stop()
    job.cancel()
    assert job.wait().status().state.value == "finished"
    flow.run(runtime="local").wait("60s")
    assert len(rows) == 2, "a flow runs again, and its sink takes more"
