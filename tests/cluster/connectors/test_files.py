"""Files appear with their checkpoints while the job runs."""

from __future__ import annotations

import pyarrow.dataset as ds
import pytest
from watching import until

import evenflow as ef


@pytest.mark.first
def test_files_commit_with_checkpoints_while_the_job_runs_and_hold_every_row_once(tmp_path):
    folders, rows = {kind: tmp_path / kind for kind in ("parquet", "csv")}, []
    flow = ef.Dataflow("files")
    numbers = flow.read(ef.generate(rate=5000, every="50ms", keys=10)).select("seq")
    numbers.write(ef.write_parquet(folders["parquet"])).write(ef.write_csv(folders["csv"])).write(ef.to_list(rows))
    job = flow.run(parallelism=2, config=ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="200ms")))
    for out in folders.values():
        until(lambda out=out: len({path.name.split("-")[1] for path in out.glob("part-*")}) >= 3, "three checkpoints have committed files")
    until(lambda: rows, "rows have come to the driver while the job runs")
    assert job.status().state.value == "running"
    assert job.status().completed_checkpoints >= 3
    job.stop(drain=True)
    job.wait("60s")
    for kind, out in folders.items():
        assert not list(out.glob(".*"))
        seqs = ds.dataset(out, format=kind).to_table()["seq"].to_pylist()
        assert sorted(seqs) == sorted(row["seq"] for row in rows)
        assert len(set(seqs)) == len(seqs)
        assert [sum(1 for seq in seqs if seq % 2 == half) for half in (0, 1)] == [f.rows_in for f in job.metrics()]
