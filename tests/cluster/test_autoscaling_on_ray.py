"""A job on Ray gives its operators the workers that the demand takes, and no others; its results stay what they are without."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from watching import until

import evenflow as ef

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is

COST = 0.043
"""Seconds that a record takes: a wait, since more workers than CPUs would otherwise bring nothing."""

DEMAND, DOUBLED = 37.5, 75.0
"""Records per second. They take 2 and 4 workers, as long as a record takes 40 to 53 ms: a machine that is busy wakes who waits late."""

LOOKS_ROWS = 375
"""Rows that come in some five looks at the doubled demand: what is not decided in these stays as it is."""


def rising(doubled):
    """A source that offers DEMAND, and twice as much once the file `doubled` is there; it knows its backlog and states no rate."""
    import time  # inside, so that all of it travels to workers, which don't find this module

    import pyarrow as pa

    from evenflow.engine.batch import Batch
    from evenflow.engine.source import Source, SourceReader

    class Reader(SourceReader):
        given, due, seen, finished = 0, 0.0, None, False

        def poll(self, max_rows):
            rows = min(self.backlog(), max_rows)
            if rows <= 0:
                return None
            seqs = list(range(self.given, self.given + rows))
            self.given += rows
            return Batch(pa.record_batch({"key": [seq * 7919 % 400 for seq in seqs], "seq": seqs}))

        def backlog(self):
            now = time.monotonic()
            rate = DOUBLED if doubled.exists() else DEMAND
            self.due += rate * (now - self.seen if self.seen is not None else 0.0)
            self.seen = now
            return int(self.due) - self.given

        def position(self):
            return self.given

        def seek(self, position):
            self.given, self.due = position, float(position)

    class Rising(Source):
        name = "rising"

        def reader(self, index, parallelism):
            return Reader()

    return Rising()


def counted(results, doubled):
    """How often each key has come so far, record by record."""

    def count(state, row):
        import time

        time.sleep(COST)
        n = (state or 0) + 1
        return n, {**row, "n": n}

    flow = ef.Dataflow("rising")
    flow.read(rising(doubled)).key_by("key").stateful_map(count).named("count").write(ef.to_list(results))
    return flow


def check(results):
    """Each record once, and every key counted without a gap in the order in which its records came."""
    seqs = [row["seq"] for row in results]
    assert sorted(seqs) == list(range(len(seqs)))
    counts = Counter()
    for row in sorted(results, key=lambda row: row["seq"]):
        counts[row["key"]] += 1
        assert row["n"] == counts[row["key"]], row


def test_ds2_finds_the_workers_for_the_demand_and_again_when_it_doubles_and_stays(tmp_path):
    results, doubled = [], tmp_path / "doubled"
    config = ef.JobConfig(
        key_groups=64,
        checkpoint=ef.CheckpointConfig(interval="500ms"),
        metrics=ef.MetricsConfig(window="200ms"),
        autoscale=ef.AutoscaleConfig("ds2", interval="1s", max_parallelism=6),
    )
    job = counted(results, doubled).run(runtime="ray", config=config)

    def workers():
        return sum(name.startswith("count-") for name in job.status().workers)

    def decided():
        return [record.decided.parallelism["count"] for record in job.decisions() if record.decided.parallelism]

    def demands_for(count):
        return [record.seen.operator("rising").source_rate for record in job.decisions() if record.decided.parallelism == {"count": count}]

    try:
        until(lambda: workers() == 2, "two workers are there for the demand")
        doubled.touch()
        until(lambda: workers() == 4, "four workers are there for the doubled demand")
        until(lambda: job.decisions()[-1].done != "under way", "the decision is carried out")
        seen = len(results)
        until(lambda: len(results) >= seen + LOOKS_ROWS, "the stream goes on")
        *known, last = decided()
        assert (known[0], last) == (2, 4), [(record.decided.reason, record.done) for record in job.decisions()]
        # A look that begins before the demand doubles sees a part of it. Three workers are right for that part only.
        assert known[1:] in ([], [3])
        assert all(demand < 0.95 * DOUBLED for demand in demands_for(3)), demands_for(3)
        job.stop()
        job.wait("60s")
    finally:
        with suppress(ef.JobError):  # it has ended
            job.cancel()
    check(results)
    assert decided() == [2, 4]
    assert [(report.before, report.after) for report in job.scalings()] == [(1, 2), (2, 4)]
