"""Programs of the documentation that need Ray, run unchanged except that they wait for events instead of some seconds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from patience import patience
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


@contextmanager
def started(cluster: str, program: str, code: str) -> Iterator[subprocess.Popen[str]]:
    """Write a program into this folder and start it, as a reader does."""
    Path(program).write_text(code)
    process = subprocess.Popen([sys.executable, program], env={**os.environ, "RAY_ADDRESS": cluster}, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def shell(cluster: str, command: str) -> str:
    """Run a command of a page with the `evenflow` of these tests; return all that it prints."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "RAY_ADDRESS": cluster, "PATH": path}
    done = subprocess.run(command, shell=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout


def commands(page: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a page, each with the lines that the page shows below it."""
    lines = "".join(blocks(page, "console")).splitlines()
    begun = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    return [(lines[at][2:], lines[at + 1 : end]) for at, end in pairwise([*begun, len(lines)])]


def test_a_worker_is_killed_and_no_order_is_lost_or_counted_twice(capsys):
    (code,) = blocks("tutorial/4-on-ray.md", "python")
    assert code.count("rate=2_000") == 1
    run(code.replace("rate=2_000", "rate=8_000"))
    printed = [line for line in capsys.readouterr().out.splitlines() if "(raylet)" not in line]
    assert printed == blocks("tutorial/4-on-ray.md", "text")[0].splitlines()


def test_a_program_that_is_interrupted_continues_when_it_is_started_again(cluster):
    (code,) = blocks("tutorial/4-on-ray.md", "python")
    code = code.replace("rate=2_000", "rate=4_000")
    with started(cluster, "orders.py", code) as first:
        until(Path("crashed").exists, "half of the orders are read")
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=patience(60))
        assert first.returncode != 0
    with started(cluster, "orders.py", code) as second:
        printed, _ = second.communicate(timeout=patience(120))
        assert second.returncode == 0
    assert "orders counted: 40000\n" in printed


def test_a_hot_key_moves_and_new_code_replaces_the_old_or_is_taken_back(cluster):
    page = "tutorial/5-a-live-job.md"
    (code,) = blocks(page, "python")
    assert code.count("60 * RATE") == 1
    with started(cluster, "shops.py", code.replace("60 * RATE", "2 * RATE")) as program:
        job = connected("shops")
        until(lambda: any(move.over and move.reason.startswith("hotspot, automatic") for move in job.migrations()), "a hot key has moved")
        assert {key for key, _ in job.load("totals").hot_keys[:2]} == {"shop-1", "shop-3"}
        for command, shown in commands(page):
            if command in {"python shops.py", "evenflow ui shops"}:
                continue
            printed = shell(cluster, command.replace("--watch 15s", "--watch 2s"))
            assert [line for line in shown if line not in printed] == [], printed
        assert [report.state.value for report in job.upgrades()] == ["done", "rolled back"]
        assert [report.state.value for report in job.scalings()] == ["done"]
        program.communicate(timeout=patience(60))
        assert program.returncode == 0


def connected(name: str) -> ef.Job:
    """Connect to a job that another process starts."""
    found: list[ef.Job] = []

    def connects() -> bool:
        with suppress(ef.JobNotRunningError):
            found.append(ef.connect(name))
        return bool(found)

    until(connects, f"{name} has started")
    return found[0]


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
