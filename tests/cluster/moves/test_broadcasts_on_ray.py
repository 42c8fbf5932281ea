"""A broadcast stream on Ray: while workers join, leave and are killed, every row sees exactly the rules before it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from comparing import in_order
from watching import await_rows, kill

import evenflow as ef
from evenflow.scheduler.protocol.reports import ScalingState

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is


def build(payments, rules):
    """Return a flow, and its results with the rows of both sources. Each payment counts the rules before it, once all have arrived."""

    class Counted(ef.KeyedFunction):  # inside, so that it travels to workers, which don't find this module
        waiting = ef.map_state()
        newest = ef.value_state(-1)

        def on_row(self, key, row, context):
            version = max((rule["seq"] for rule in context.broadcast.values()), default=-1)
            if version < self.newest:
                raise ValueError(f"rule {version} came behind {self.newest}")
            self.newest = version
            self.waiting[row["seq"]] = row["ts"]
            context.timer(context.time)

        def on_timer(self, key, time, context):
            for seq in [seq for seq, ts in self.waiting.items() if ts <= time.timestamp() * 1000]:
                ts = self.waiting.pop(seq)
                earlier = [rule["value"] for rule in context.broadcast.values() if rule["ts"] < ts]
                yield {"seq": seq, "rules": len(earlier), "total": sum(earlier)}

    flow, results = ef.Dataflow("fraud"), {"payments": [], "rules": [], "counted": []}
    read = {"payments": flow.read(payments), "rules": flow.read(rules).parallelism(1)}
    for name, stream in read.items():
        stream.write(ef.to_list(results[name], name=f"to_{name}"))
    counted = read["payments"].key_by("key").process(Counted(), read["rules"].broadcast("seq")).named("counted")
    counted.write(ef.to_list(results["counted"], name="to_counted"))
    return flow, results


def test_workers_that_join_leave_and_are_killed_have_the_rules_in_order(tmp_path):
    payments = ef.generate(rate=200, every="50ms", keys=50, string_keys=True, max_delay="500ms", name="payments")
    flow, results = build(payments, ef.generate(rate=20, every="50ms", keys=1, seed=3, name="numbers"))
    config = ef.JobConfig(
        parallelism=1,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="500ms"),
        restart=ef.RestartConfig(delay="10ms", most=1_000),
        metrics=ef.MetricsConfig(window="200ms"),
    )
    job = flow.run(runtime="ray", config=config)

    try:
        await_rows(job, results["counted"], 50)
        for workers, killed in ((3, "counted-2"), (2, "broadcast-0"), (3, "numbers-0")):
            assert job.scale("counted", workers).state is ScalingState.DONE
            await_rows(job, results["counted"], 50)
            kill(job, killed)
            await_rows(job, results["counted"], 50)
        assert sum(report.keys_moved for report in job.scalings()) > 0
        job.stop(drain=True)
        job.wait("60s")
    finally:
        with suppress(ef.JobError):  # it has ended
            job.cancel()
    assert len({row["rules"] for row in results["counted"]}) > 20
    again, expected = build(
        ef.from_items(results["payments"], event_time="ts", max_delay="5m"), ef.from_items(results["rules"], event_time="ts")
    )
    again.run(runtime="local").wait("60s")
    assert in_order(results["counted"]) == in_order(expected["counted"])
