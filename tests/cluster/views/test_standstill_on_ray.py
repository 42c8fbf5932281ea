"""A function of a user that does not return on Ray: the status, `evenflow top` and the page name it, with its stack, until it does."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import contextmanager

import pytest
from browsing import browser, complaints
from playwright.sync_api import expect
from test_page import PATIENCE, command
from watching import figures_of, pid, until

import evenflow as ef
from evenflow.cli import main
from evenflow.scheduler.load.wait import WaitKind

TOTAL = 4_000


@pytest.fixture
def gate(tmp_path):
    yield tmp_path / "open"
    (tmp_path / "open").touch()


@pytest.fixture
def rows():
    return []


@pytest.fixture
def job(cluster, gate, rows):
    """Run a job that counts rows by key, in a function that waits for the file `gate` before row 100."""

    def wait_for_a_service():
        while not gate.exists():
            time.sleep(0.05)

    def classify(state, row):
        if row["seq"] == 100:
            wait_for_a_service()
        return (state or 0) + 1, {"key": row["key"], "n": (state or 0) + 1}

    flow = ef.Dataflow("standing")
    clicks = flow.read(ef.generate(rate=2_000, total=TOTAL, keys=10))
    clicks.key_by("key").stateful_map(classify).named("classes").write(ef.to_list(rows))
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(interval="1s"), worker=ef.WorkerConfig(heartbeat_timeout="10m", keep="0s"))
    job = flow.run(parallelism=1, config=config)
    yield job
    gate.touch()
    job.cancel()
    job.wait("60s")


@contextmanager
def running(flow, gate, **config):
    """Run a flow until the block ends, and open the gate in the end."""
    worker = ef.WorkerConfig(heartbeat_timeout="10m", keep="0s")
    job = flow.run(config=ef.JobConfig(parallelism=1, worker=worker, **config))
    try:
        yield job
    finally:
        gate.touch()
        job.cancel()
        job.wait("60s")


def strongest(job, kind):
    """Return the strongest cause for which the job stands still, if it is of this kind."""
    found = job.status().waits_for
    return found[0] if found and found[0].kind is kind else None


def function(job):
    return strongest(job, WaitKind.FUNCTION)


@pytest.mark.timeout(400)
def test_function_that_does_not_return_is_named_with_its_stack_until_it_does(cluster, job, gate, rows, capsys):
    wait = until(lambda: function(job), "the function is named")
    assert (wait.operator, wait.worker) == ("classes", "classes-0")
    assert wait.seconds >= 5.0
    assert [frame.partition(" (")[0] for frame in wait.stack[:2]] == ["classify", "wait_for_a_service"]
    assert all(frame.rpartition(":")[0].endswith(__file__) and frame.rpartition(":")[2][:-1].isdigit() for frame in wait.stack[:2])
    assert wait.text.startswith(f"operator `classes` (worker classes-0): {wait.stack[0]} has not returned for ")
    until(lambda: (function(job) or wait).seconds > wait.seconds, "its seconds grow")

    assert main(["top", job.name, "--once"]) == 0
    assert "wait_for_a_service" in capsys.readouterr().out
    with command(cluster, "ui", job.name, "--no-open") as process, browser() as chromium:
        page = chromium.new_page()
        said = complaints(page)
        page.goto(process.stdout.readline().strip())
        expect(page.locator("#waits li").first).to_contain_text("has not returned for", timeout=PATIENCE)
        page.locator("#waits summary").first.click()
        expect(page.locator("#waits pre").first).to_contain_text("wait_for_a_service")
        assert said == []

    gate.touch()
    job.wait("120s")
    assert job.status().waits_for == ()
    assert sum(max(row["n"] for row in rows if row["key"] == key) for key in {row["key"] for row in rows}) == len(rows) == TOTAL


@pytest.mark.timeout(400)
def test_process_that_does_not_answer_is_named_until_it_goes_on(job, gate, rows):
    worker = until(lambda: function(job), "the function is named").worker
    process = pid(job, worker)
    os.kill(process, signal.SIGSTOP)
    try:
        wait = until(lambda: strongest(job, WaitKind.WORKER), "the silent worker is named")
        assert wait.worker == worker
        assert "has not answered for" in wait.text
    finally:
        os.kill(process, signal.SIGCONT)
    until(lambda: function(job), "the function is named again")
    gate.touch()
    job.wait("120s")
    assert len(rows) == TOTAL


@pytest.mark.timeout(400)
def test_sink_that_holds_all_workers_before_it_back_is_named_and_not_their_wait_for_credit(cluster, gate, rows):
    def store(row):
        while not gate.exists():
            time.sleep(0.05)

    flow = ef.Dataflow("held-back")
    numbers = flow.read(ef.generate(total=100_000, rows_per_batch=1_000, keys=10)).named("numbers")
    counted = numbers.key_by("key").aggregate(n=ef.count()).named("counted")
    counted.map(dict).parallelism(2).named("stored").write(ef.to_callback(store, name="database"))
    network = ef.NetworkConfig(batch_rows=1_000, source_rows=1_000, credit_batches=2)
    with running(flow, gate, network=network, metrics=ef.MetricsConfig(window="200ms"), combine=False) as job:
        before = ("numbers", "counted", "stored")
        until(lambda: all(figures_of(job, name)[0].backpressure > 0.5 for name in before), "all before it wait for credit")
        until(lambda: function(job), "the sink is named")
        (wait,) = job.status().waits_for
        assert (wait.kind, wait.operator, wait.worker) == (WaitKind.FUNCTION, "database", "database-0")
        assert wait.stack[0].partition(" (")[0] == "store"
        gate.touch()
        job.wait("120s")


@pytest.mark.timeout(400)
def test_coroutine_that_waits_for_an_answer_is_named_with_the_place_where_it_waits(cluster, gate, rows):
    async def fetch(row):
        if row["seq"] == 100:
            await answer()
        return row

    async def answer():
        while not gate.exists():  # noqa: ASYNC110 -- another process opens it
            await asyncio.sleep(0.05)

    flow = ef.Dataflow("awaiting")
    flow.read(ef.generate(rate=2_000, total=TOTAL, keys=10)).map_async(fetch, timeout=None).named("fetched").write(ef.to_list(rows))
    with running(flow, gate) as job:
        wait = until(lambda: function(job), "the coroutine is named")
        assert wait.operator == "fetched"
        assert [frame.partition(" (")[0] for frame in wait.stack[:3]] == ["fetch", "answer", "sleep"]
        assert f"({__file__}:" in wait.stack[1]
        assert wait.text.startswith(f"operator `fetched` (worker {wait.worker}): {wait.stack[0]} has not returned for ")
        gate.touch()
        job.wait("120s")
    assert sorted(row["seq"] for row in rows) == list(range(TOTAL))
