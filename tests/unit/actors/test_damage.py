"""Every file of a running job is damaged in every way, then something is lost: right rows, or a job that stops and says why."""

from __future__ import annotations

import re
import threading
import time

import pyarrow.parquet as pq
import pytest
from lossy import LossyJob, cut, delete, empty, flip, make_unreadable
from patience import patience

import evenflow as ef
from evenflow.connectors.exchange.exchange_folder import ExchangeFolder
from evenflow.job import Job

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

TOTAL, PATIENCE = 600, patience(30)


class Outcome:
    """The output of a job, and the reason why it stopped, if it did."""

    def __init__(self, folder):
        self.rows, self.folder, self.problem = [], folder, None

    def is_right(self, expected):
        """Return True if every sink has every row once."""
        spark = ExchangeFolder(self.folder / "spark")
        found = [
            self.rows,
            pq.read_table(sorted((self.folder / "parquet").glob("*.parquet"))).to_pylist(),
            pq.read_table([file.path for file in spark.committed(spark.latest())]).to_pylist(),
        ]
        return all(in_order(rows) == expected for rows in found)


def in_order(rows):
    return sorted((row["key"], row["n"]) for row in rows)


@pytest.fixture(scope="module")
def expected():
    rows, flow = [], ef.Dataflow("f")
    flow.read(ef.generate(total=TOTAL, keys=10)).key_by("key").stateful_map(number).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    return in_order(rows)


def number(state, row):
    n = (state or 0) + 1
    return n, {"key": row["key"], "n": n}


class Lossy:
    """A job that has committed three checkpoints; its source emits more rows only when `finish` lets it."""

    def __init__(self, folder):
        self.outcome, self.folder, self._asked = Outcome(folder), folder, threading.Event()
        self._now, self._step, self._seen = 0.0, 0.0, 0
        flow = ef.Dataflow("f")
        source = ef.generate(total=TOTAL, keys=10, rate=1000, rows_per_batch=20, clock=self._clock)
        numbered = flow.read(source).key_by("key").stateful_map(self._number).named("count")
        sinks = {
            "list": ef.to_list(self.outcome.rows, name="list"),
            "parquet": ef.write_parquet(folder / "parquet", name="parquet"),
            "spark": ef.to_spark(path=folder / "spark", name="spark"),
        }
        for sink in sinks.values():
            numbered.write(sink)
            sink.start()
        config = ef.JobConfig(
            key_groups=8, checkpoint=ef.CheckpointConfig(str(folder / "saved"), interval=None), restart=ef.RestartConfig(delay=0, most=3)
        )
        self.runtime = LossyJob(flow.plan(config=config), config)
        self.job = Job("f", self.runtime, {}, sinks)
        assert self._asked.wait(PATIENCE), "the source has begun to count time"
        for share in range(1, 4):
            self._now = share / 10
            self._wait(lambda share=share: self._seen >= share * 90)
            self.job.checkpoint()

    def _clock(self):
        now = self._now
        self._now += self._step
        self._asked.set()
        return now

    def _number(self, state, row):
        self._seen += 1
        return number(state, row)

    def _wait(self, happened):
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < deadline, f"nothing came within {PATIENCE} s"
            time.sleep(0.005)

    def finish(self):
        self._step = 0.1
        try:
            self.job.wait("20s")
        except ef.EvenflowError as error:
            self.outcome.problem = "\n".join([str(error), *getattr(error, "__notes__", ())])
        return self.outcome


def under(folder, pattern):
    return lambda job: sorted((job.folder / folder).glob(pattern))


NEWEST = "checkpoint-00000003"
FILES = {
    "the newest manifest": under("saved/f", f"{NEWEST}/manifest"),
    "the two newest manifests": under("saved/f", "*[23]/manifest"),
    "all manifests": under("saved/f", "*/manifest"),
    "the newest checkpoint": under("saved/f", NEWEST),
    "all checkpoints": under("saved/f", "*"),
    "the job's folder": under("saved", "f"),
    "the newest state": under("saved/f", f"{NEWEST}/*.state"),
    "all state": under("saved/f", "*/*.state"),
    "the newest part": under("parquet", "part-00000003-*"),
    "the newest log file": under("spark/_spark_metadata", "2"),
    "the owners": under(".", "*/.*.owner"),
}
WORKER, COORDINATOR = "a worker", "the coordinator"
LOSSES = {WORKER: lambda job: job.runtime.lose_worker("count-0"), COORDINATOR: lambda job: job.runtime.lose_coordinator()}

IS_RIGHT = {
    "the newest manifest": (delete, cut, empty, flip),
    "the two newest manifests": (delete, flip),
    "all manifests": (delete, flip),
    "the newest checkpoint": (delete,),
    "all checkpoints": (delete,),
    "the job's folder": (delete,),
    "the owners": (delete, make_unreadable),
    "the newest state": (delete, cut, empty, flip),
    "all state": (delete, flip),
    "the newest log file": (delete,),
}
STOPS = {
    "the newest state": {make_unreadable: r"Is a directory: .*\.state"},
    "the newest part": {delete: r"`parquet`: .*prepared is missing", cut: "`parquet`: .* bytes, and .* were written", empty: "has 0 bytes"},
    "the newest log file": {cut: "_spark_metadata/2", empty: "_spark_metadata/2", flip: "_spark_metadata.*is damaged"},
}


def losses(files):
    """Return the losses that matter: only a restarted coordinator reads manifests and owners."""
    return (COORDINATOR,) if "manifests" in files or "owners" in files else LOSSES


def case(files, damage, loss, *more):
    return pytest.param(files, damage, loss, *more, id=f"{files}, {damage.__name__}, {loss}")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("files", "damage", "loss"), [case(f, d, loss) for f, damages in IS_RIGHT.items() for d in damages for loss in losses(f)]
)
def test_rows_are_right_whatever_is_damaged_and_lost(files, damage, loss, tmp_path, expected):
    job = Lossy(tmp_path)
    hurt(job, files, damage, loss)
    outcome = job.finish()
    assert outcome.problem is None
    assert outcome.is_right(expected)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("files", "damage", "loss", "words"),
    [case(files, damage, loss, words) for files, damages in STOPS.items() for damage, words in damages.items() for loss in LOSSES],
)
def test_job_that_can_not_give_the_right_rows_stops_and_says_what_is_damaged(files, damage, loss, words, tmp_path):
    job = Lossy(tmp_path)
    hurt(job, files, damage, loss)
    assert re.search(words, job.finish().problem or "it has not stopped")


def test_manifest_that_is_there_and_can_not_be_read_is_not_taken_for_one_that_is_damaged(tmp_path):
    job = Lossy(tmp_path)
    with pytest.raises(OSError, match=rf"{NEWEST}/manifest"):
        hurt(job, "the newest manifest", make_unreadable, COORDINATOR)
    job.job.cancel()
    job.finish()


def hurt(job, files, damage, loss):
    paths = FILES[files](job)
    assert paths
    for path in paths:
        damage(path)
    LOSSES[loss](job)
