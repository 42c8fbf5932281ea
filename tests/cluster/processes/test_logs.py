"""The output of a job's processes can be read by the worker's name."""

from __future__ import annotations

import pytest
from watching import until

import evenflow as ef
from evenflow.cli import main


@pytest.fixture(scope="module")
def job(cluster):
    def chatter(row):
        import sys

        for stream, words in ((sys.stdout, f"saw {row['key']}"), (sys.stderr, "[b]trouble[/b]")):
            stream.write(f"{words}\n")
            stream.flush()
        return row

    flow = ef.Dataflow("chatter")
    numbers = flow.read(ef.generate(rate=10, keys=5, name="numbers"))
    numbers.map(chatter).key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_callback(lambda row: None))
    job = flow.run(parallelism=1, config=ef.JobConfig(worker=ef.WorkerConfig(keep="0s")))
    yield job
    job.cancel()
    job.wait("60s")


def test_the_streams_of_a_worker_are_shown_by_its_name(job, capsys):
    def shown() -> str:
        assert main(["logs", "chatter", "numbers-0", "--lines", "3"]) == 0
        out: str = capsys.readouterr().out
        return out if "saw" in out and "trouble" in out else ""

    out = until(shown, "the worker has printed")
    assert "== chatter/numbers-0 stdout /" in out
    assert "[b]trouble[/b]" in out
    assert out.count("saw") <= 3


def test_a_worker_that_is_not_there_is_named(job, capsys):
    assert main(["logs", "chatter", "missing-0"]) == 1
    assert "has no worker `missing-0`; there are: coordinator, numbers-0, count-0" in " ".join(capsys.readouterr().err.split())
