"""`Chaos` kills the processes of its job, whichever job they were started for."""

from __future__ import annotations

from watching import PATIENCE, await_rows, until

import evenflow as ef
from evenflow.testing.chaos.chaos import WORKER, Chaos

EARLIER, LATER = "earlier", "later"
CONFIG = {"parallelism": 1, "restart": ef.RestartConfig("fixed", delay="10ms", most=1_000)}


def flow_of(name, rows, source):
    flow = ef.Dataflow(name)
    flow.read(source).key_by("key").stateful_map(lambda state, row: (None, row)).named("kept").write(ef.to_list(rows))
    return flow


def test_workers_whose_processes_an_earlier_job_had_are_killed(tmp_path):
    flow_of(EARLIER, [], ef.from_items([{"key": 1}])).run(config=ef.JobConfig(**CONFIG)).wait(PATIENCE)
    rows = []
    checkpoint = ef.CheckpointConfig(str(tmp_path), interval="300ms")
    job = flow_of(LATER, rows, ef.generate(rate=500, every="50ms")).run(config=ef.JobConfig(checkpoint=checkpoint, **CONFIG))
    try:
        await_rows(job, rows, 50)
        processes = {place.process for place in job.status().places.values()}
        assert not all(process.startswith(f"{LATER}/") for process in processes), processes
        with Chaos(job, every="100ms", kinds=(WORKER,)) as chaos:
            until(lambda: chaos.kills, "a worker is killed")
        await_rows(job, rows, 50)
        job.stop(drain=True)
        job.wait(PATIENCE)
    finally:
        job.cancel()
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))
