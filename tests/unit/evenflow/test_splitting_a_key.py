"""`job.split` and `job.unsplit` on joins: what they do to a running job, and what is refused with what there is."""

from __future__ import annotations

import threading

import pytest
from patience import patience

import evenflow as ef

WORKERS = 3


def joining(how, folder):
    """Start an unbounded job with the join `joined` of two streams of a few keys, and wait for its first rows.

    The rates are low: all pairs are joined, so that the work of a second grows with the job's age.
    """
    flow, flowing = ef.Dataflow("hot"), threading.Event()
    left, right = (flow.read(ef.generate(keys=2, rate=20)) for _ in range(2))
    joined = left.key_by("key").join(right.key_by("key"), ef.always(), how=how).named("joined")
    joined.write(ef.to_callback(lambda row: flowing.set()))
    flow_config = ef.JobConfig(parallelism=WORKERS, key_groups=16, checkpoint=ef.CheckpointConfig(str(folder), interval=None))
    job = flow.run(runtime="local", config=flow_config)
    if how == "inner":
        assert flowing.wait(patience(60))
    return job


@pytest.fixture
def running(refused, tmp_path, request):
    job = joining(request.param, tmp_path / "checkpoints")
    yield job
    job.cancel()
    job.wait("60s")


inner, left, full = (pytest.mark.parametrize("running", [how], indirect=True) for how in ("inner", "left", "full"))


@inner
def test_key_is_split_and_gathered_and_a_savepoint_has_each_row_once(running, tmp_path):
    report = running.split("joined", 0, to=range(WORKERS), dealt="right")
    assert (report.state.value, report.reason) == ("done", "by hand: key 0 is split, right is dealt")
    assert report.keys_moved, "the rows of left were copied"
    assert set(running.load("joined").split) <= {0}
    with pytest.raises(ef.RequestError, match=r"key 0 is split over the workers .*: call job.unsplit first"):
        running.migrate("joined", keys=[0], to=1)
    saved = ef.read_savepoint(running.savepoint(str(tmp_path / "savepoint"))).state("joined")
    for side in ("left", "right"):
        rows = [row["seq"] for row in saved.column(side).to_pylist() if row is not None]
        assert len(rows) == len(set(rows)) > 0
    assert running.unsplit("joined", 0).state.value == "done"
    with pytest.raises(ef.RequestError, match="key 0 is not split"):
        running.unsplit("joined", 0)


@inner
def test_wrong_workers_are_refused_with_those_that_there_are(running):
    with pytest.raises(ef.RequestError, match="`joined` has no worker 3: its 3 workers are 0 to 2"):
        running.split("joined", 0, to=[1, 3])
    with pytest.raises(ef.RequestError, match=r"`joined`: key 0 is at worker .: give to="):
        running.split("joined", 0, to=[])


@left
def test_side_that_can_not_be_dealt_is_refused_with_the_one_that_can(running):
    with pytest.raises(ef.RequestError, match="`joined` can't deal the rows of its 'right' side: give dealt='left'"):
        running.split("joined", 0, to=[0, 1], dealt="right")


@full
def test_full_join_deals_no_side(running):
    with pytest.raises(
        ef.RequestError, match="`joined` can't split a key over several workers: only joins can, and a full join or one in sessions can't"
    ):
        running.split("joined", 0, to=[0, 1])
