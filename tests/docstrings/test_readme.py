"""The README's program, and the calls that steer it, run as they stand there, except that they run without Ray, and that the program's
source gives its rows 20 times a second and not 1,000 times, which takes a tenth of the processor time. Its last rows wait for the scaling.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import evenflow as ef

README = Path(__file__).parents[2] / "README.md"


class Clock:
    """The time since its creation, which stops at second 10 until `on` is called."""

    def __init__(self) -> None:
        self._begun, self._stood = time.monotonic(), None

    def __call__(self) -> float:
        passed = time.monotonic() - self._begun
        return min(passed, 10.0) if self._stood is None else passed - self._stood

    def on(self) -> None:
        self._stood = max(0.0, time.monotonic() - self._begun - 10.0)


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the program's source: on a busy machine the stream would end before a worker has joined."""
    clock, scale = Clock(), ef.Job.scale

    def scaled(*arguments):
        try:
            return scale(*arguments)
        finally:
            clock.on()

    monkeypatch.setattr(ef.Job, "scale", scaled)
    return clock


def test_the_first_dataflow_runs_without_files_of_the_readers(tmp_path, monkeypatch, capsys, clock):
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert block.count("flow.run()") == block.count("total=300_000") == 1
    block = block.replace("flow.run()", 'flow.run(runtime="local")').replace("total=300_000", 'total=300_000, every="50ms", clock=clock')
    monkeypatch.chdir(tmp_path)
    exec(block, {"__name__": "__main__", "clock": clock})
    seconds = pq.read_table("clicks").group_by("window_start").aggregate([("n", "sum"), ("largest", "max")])
    rows = ef.generate(total=300_000, rows_per_batch=300_000).reader(0, 1).poll(300_000).rows
    assert len(seconds) == 15
    assert pc.sum(seconds["n_sum"]).as_py() == pc.sum(pc.less(rows["value"], 900)).as_py()
    assert pc.max(seconds["largest_max"]).as_py() == 899.875
    printed = capsys.readouterr().out
    assert "scaling 0 of `aggregate` from 1 to 2 workers done" in printed
    assert "load of 2 workers" in printed
    assert "'key-0'" in printed


def test_the_calls_that_steer_a_job_are_those_of_a_job(tmp_path, monkeypatch):
    calls = re.findall(r"^    >>> (.*)$", README.read_text(), re.MULTILINE)
    assert len(calls) == 6
    flow = ef.Dataflow("hot-keys")
    clicks = flow.read(ef.generate(rate=500, every="10ms", keys=50, string_keys=True)).key_by("key")
    clicks.aggregate(n=ef.count()).write(ef.to_list([]))
    job = flow.run(runtime="local", parallelism=2, config=ef.JobConfig(checkpoint=ef.CheckpointConfig(tmp_path / "saved")))
    monkeypatch.setattr(ef, "connect", {"hot-keys": job}.__getitem__)
    try:
        exec("\n".join(calls).replace("/backup/", f"{tmp_path}/"), {"ef": ef, "new_flow": flow})
    finally:
        job.cancel()
        job.wait("60s")
    assert ef.read_savepoint(tmp_path / "hot-keys").job == "hot-keys"
