"""The start of a job: the modules that its workers load, and the driver's messages meanwhile."""

from __future__ import annotations

import logging
import sys

import evenflow as ef
from evenflow.actors.driver import start_watch

UNUSED = frozenset({
    "confluent_kafka", "deltalake", "duckdb", "fsspec", "lmdb", "matplotlib", "prometheus_client", "psycopg", "pyspark", "rich", "valkey",
})  # fmt: skip


def test_worker_loads_what_its_task_needs_and_the_driver_says_what_a_start_waits_for(cluster, monkeypatch, caplog):
    monkeypatch.setattr(start_watch, "SILENT", 0.01)
    flow, rows = ef.Dataflow("loaded"), []

    def modules(row):
        return {"loaded": sorted(sys.modules)}

    flow.read(ef.from_items([1])).map(modules).write(ef.to_list(rows))
    with caplog.at_level(logging.INFO, logger="evenflow"):
        flow.run(config=ef.JobConfig(worker=ef.WorkerConfig(keep=0))).wait("60s")
    loaded = set(rows[0]["loaded"])
    assert "evenflow.actors.processes.worker" in loaded
    assert "evenflow.actors.processes.coordinator" not in loaded, "it has a handle of that, which loads its actor's class alone"
    assert sorted(UNUSED & {module.partition(".")[0] for module in loaded}) == []
    assert "job `loaded` waits for the process of its coordinator" in caplog.messages
