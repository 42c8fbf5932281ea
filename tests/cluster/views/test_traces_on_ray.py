"""Traces of a job on Ray reach the collector that its driver's environment names."""

from __future__ import annotations

import os
import signal
import time

import pytest
import ray
from otlp_receiver import receiving
from watching import until

import evenflow as ef
from evenflow.actors.processes.process import NAMESPACE

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is


@pytest.fixture
def receiver(monkeypatch):
    with receiving() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        yield found


def test_checkpoints_moves_scalings_and_a_recovery_are_traced(cluster, receiver, tmp_path):
    begun = time.time()
    flow = ef.Dataflow("traced")
    rows = flow.read(ef.generate(rate=1_000, every="50ms", keys=50, string_keys=True))
    counted = rows.key_by("key").stateful_map(lambda state, row: ((state or 0) + 1, {"n": state or 0})).named("counted")
    counted.write(ef.to_callback(lambda row: None, name="nowhere"))
    checkpoints = ef.CheckpointConfig(interval="1s", dir=tmp_path)
    job = flow.run(config=ef.JobConfig(parallelism=2, key_groups=16, checkpoint=checkpoints))
    try:
        until(lambda: job.status().completed_checkpoints, "a checkpoint is complete")
        job.migrate("counted", groups=range(4), to=1)
        job.scale("counted", 3)
        until(lambda: job.status().completed_checkpoints > 1, "another checkpoint is complete")
        process = ray.get_actor(job.status().places["counted-0"].process, namespace=NAMESPACE)
        os.kill(ray.get(process.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)
        until(lambda: job.status().attempt and job.status().state == "running", "the job has gone on")
        job.stop(drain=True)
        job.wait("120s")
    finally:
        job.cancel()
        job.wait("60s")
    kinds = {f"evenflow {kind}" for kind in ("checkpoint", "move", "scaling", "recovery")}
    until(lambda: kinds <= receiver.spans.keys(), lambda: f"spans of all kinds have come; there are only {sorted(receiver.spans)}")
    assert receiver.services == {"shop"}
    by_hand = receiver.spans["evenflow move"][0]
    report = job.migrations()[0]
    assert by_hand.attributes["evenflow.operator"] == "counted"
    assert (by_hand.attributes["evenflow.keys"], by_hand.attributes["evenflow.strategy"]) == (report.keys_moved, report.strategy)
    assert len(receiver.spans["evenflow move"]) == len(job.migrations())
    (scaling,) = receiver.spans["evenflow scaling"]
    assert (scaling.attributes["evenflow.workers.before"], scaling.attributes["evenflow.workers.after"]) == (2, 3)
    (recovery,) = receiver.spans["evenflow recovery"]
    assert [name for name, _, _ in recovery.events] == ["exception"]
    numbers = [span.attributes["evenflow.number"] for span in receiver.spans["evenflow checkpoint"]]
    assert len(numbers) == len(set(numbers)) >= 2
    for spans in receiver.spans.values():
        for span in spans:
            assert span.attributes["evenflow.job"] == "traced"
            assert begun < span.begin <= span.end < time.time()
