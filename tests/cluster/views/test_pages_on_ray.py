"""Programs of the documentation that need Ray, run unchanged except that they wait for events instead of some seconds."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from watching import until

import evenflow as ef

DOCS = Path(__file__).parents[3] / "docs"

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def run(code: str, **names: Any) -> dict[str, Any]:
    """Run code as a script: its functions belong to `__main__`, so that they can be sent to workers."""
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(code, "a page", "exec"), space)
    return space


@pytest.fixture(autouse=True)
def folder_of_its_own(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_a_worker_is_killed_and_no_order_is_lost_or_written_twice(capsys):
    (code,) = blocks("tutorial/4-on-ray.md", "python")
    run(code)
    assert capsys.readouterr().out == blocks("tutorial/4-on-ray.md", "text")[0]


def test_a_skewed_stream_is_scaled_moved_and_rebalanced(capsys):
    (code,) = blocks("tutorial/5-a-skewed-stream.md", "python")
    assert code.count("time.sleep(3)") == 4

    def loaded(job):
        until(lambda: len(job.load("score").hot_keys) >= 12, "the load of a dozen hot keys is known")

    def decided(job):
        until(job.decisions, "the balancer or the auto-scaler has decided something")

    code = code.replace("time.sleep(3)", "loaded(job)").replace("time.sleep(6)", "decided(job)")
    job = run(code, loaded=loaded, decided=decided)["job"]
    printed = capsys.readouterr().out
    assert "load of 1 workers" in printed
    assert "of `score` from 1 to 2 workers done" in printed
    by_hand = job.migrations()[1]
    assert by_hand.keys_moved > 0, "hot keys were with both workers"
    assert all(report.over and report.problem is None for report in job.migrations())
    assert job.status().state is ef.JobState.FINISHED


def test_chaos_kills_processes_of_a_job_of_yours(capsys):
    (code,) = blocks("how-to/chaos.md", "python")
    assert code.count("time.sleep(60)") == code.count('every="5s"') == code.count("/shared/") == 1
    flow = ef.Dataflow("yours")
    clicks = flow.read(ef.generate(rate=1_000, every="50ms", keys=20, string_keys=True))
    clicks.key_by("key").aggregate(n=ef.count()).named("counts").write(ef.write_parquet("counts/"))
    code = code.replace("time.sleep(60)", "killed(chaos)").replace('every="5s"', 'every="2s"').replace("/shared/", "")

    def killed(chaos):
        until(lambda: chaos.kills, "chaos has killed a process")

    job = run(code, ef=ef, flow=flow, killed=killed)["job"]
    job.cancel()
    with suppress(ef.EvenflowError):
        job.wait("60s")
    assert re.search(r"^all +[1-9]", capsys.readouterr().out, re.MULTILINE), "something was killed"
