"""The endpoint of a job's metrics as Prometheus finds and reads it: by the file of targets, with a token, wherever the coordinator is."""

from __future__ import annotations

import json
import os
import signal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import ray
from patience import patience
from watching import pid, until

import evenflow as ef


def scraped(target, token):
    """Read the metrics of a target as Prometheus does."""
    request = Request(f"http://{target}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, timeout=patience(60)) as answer:
        return answer.read().decode()


def test_prometheus_finds_the_coordinator_where_it_is_and_no_longer_when_the_job_has_ended(cluster, tmp_path):
    targets = tmp_path / "targets"
    flow = ef.Dataflow("found")
    flow.read(ef.generate(rate=500, keys=5)).key_by("key").aggregate(n=ef.count()).write(ef.to_list([]))
    job = flow.run(
        config=ef.JobConfig(
            checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="500ms"),
            metrics=ef.MetricsConfig(host="0.0.0.0", token="s3cret", discovery=targets),
        )
    )
    try:
        file = targets / "found.json"

        def target():
            ((address,), labels) = json.loads(file.read_text())[0].values()
            assert (labels["job"], labels["evenflow_job"]) == ("found", "found")
            return address

        first = target()
        assert job.metrics_url == f"http://{first}/metrics"
        assert first.split(":")[0] == ray.util.get_node_ip_address()
        assert 'evenflow_job_state{job="found",state="running"} 1.0' in scraped(first, "s3cret")
        with pytest.raises(HTTPError, match="401") as refused:
            scraped(first, "guessed")
        refused.value.close()

        before = until(lambda: job.status().completed_checkpoints, "a checkpoint is complete")
        os.kill(pid(job, "coordinator"), signal.SIGKILL)
        until(lambda: target() != first, "the next coordinator has written its address")
        until(lambda: job.status().completed_checkpoints > before, "the next coordinator has completed a checkpoint")
        assert 'evenflow_restarts_total{cause="JobLostError",job="found"} 1.0' in scraped(target(), "s3cret")
    finally:
        job.cancel()
        job.wait("60s")
    assert list(targets.iterdir()) == []
