"""Jobs that start on Ray: many at a time, with a port in use, and with a permanent fault."""

from __future__ import annotations

import os
import signal
import socket
import threading
from urllib.request import urlopen

import pytest
from watching import pid, until

import evenflow as ef


def counting(name, source, out):
    flow = ef.Dataflow(name)
    flow.read(source).key_by("key").aggregate(n=ef.count(), emit="final").named("agg").write(out)
    return flow


@pytest.mark.timeout(300)
def test_jobs_that_threads_start_at_a_time_all_run(cluster):
    found = {}

    def run(number):
        rows = []
        flow = counting(f"thread-{number}", ef.generate(total=300, rate=10_000, keys=3), ef.to_list(rows))
        try:
            flow.run(parallelism=1).wait("240s")
        except ef.EvenflowError as error:
            found[number] = error
        else:
            found[number] = sum(row["n"] for row in rows)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(280)
    assert found == dict.fromkeys(range(6), 300)


def test_a_fault_that_no_restart_mends_ends_the_job_at_once_with_what_to_do(cluster, tmp_path):
    flow = counting("homeless", ef.generate(rate=500, keys=5), ef.to_list([]))
    config = ef.JobConfig(
        checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="1s"),
        restart=ef.RestartConfig("fixed", delay="100ms", most=1000),
        state=ef.StateConfig("lmdb", dir=str(tmp_path / "none")),
    )
    job = flow.run(config=config)
    with pytest.raises(ef.StateBackendError, match=r"operator `agg` can't store its state in .*/none") as raised:
        job.wait("60s")
    assert any("create " in note and "does not start again" not in note for note in raised.value.__notes__)
    assert job.status().restarts == 0


def test_a_coordinator_that_comes_back_finds_its_port_taken_and_the_job_goes_on_with_another(cluster, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flow = counting("port", ef.generate(rate=500, keys=5), ef.to_list([]))
    config = ef.JobConfig(
        checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="500ms"),
        metrics=ef.MetricsConfig(port=port),
    )
    job = flow.run(config=config)
    try:
        assert job.metrics_url.endswith(f":{port}/metrics")
        before = until(lambda: job.status().completed_checkpoints, "a checkpoint is complete")
        os.kill(pid(job, "coordinator"), signal.SIGKILL)
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def bound():
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                return False
            return True

        until(bound, "the port of the lost coordinator is free")
        taken.listen()
        status = until(lambda: (found := job.status()).completed_checkpoints > before and found, "another checkpoint is complete")
        assert f"metrics port {port} can't be used" in "".join(status.problems)
        with urlopen(status.metrics_url) as answer:
            assert b"evenflow_job_state" in answer.read()
        taken.close()
    finally:
        job.cancel()
        job.wait("60s")


def test_a_job_whose_coordinator_can_not_come_back_is_lost_with_the_reason(cluster, tmp_path):
    flow = counting("unreadable", ef.generate(rate=500, keys=5), ef.to_list([]))
    checkpoints = tmp_path / "checkpoints"
    job = flow.run(config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(checkpoints), interval="500ms")))
    until(lambda: job.status().completed_checkpoints, "a checkpoint is complete")
    process = pid(job, "coordinator")
    checkpoints.rename(tmp_path / "moved")
    checkpoints.write_text("a file in place of the folder")
    os.kill(process, signal.SIGKILL)
    with pytest.raises(ef.JobLostError, match=r"another can't begin in its place: .*NotADirectoryError"):
        job.wait("60s")
    assert job.status().state is ef.JobState.FAILED
    job.cancel()
