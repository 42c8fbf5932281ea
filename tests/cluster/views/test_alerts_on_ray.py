"""Alert rules over the series of jobs on Ray: those of jobs with a fault fire, and none for a healthy job.

A round of scrapes takes a second or more and counts as a minute, so that rules that look back for ten minutes need no ten minutes.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from patience import patience
from promtool import Recorded, complaints
from watching import pid, until

import evenflow as ef

ROUND = 1.0
SLOWER = 60.0
FIRST_LOOK = 18
"""The number of rounds after which the first rules can fire."""


def numbers(partitions):
    """Return a source of rows with growing event times; partitions other than 0 give only their first rows."""

    def generated(partition, position):
        n = position or 0
        while partition == 0 or n == 0:
            for at in range(n, n + 20):
                yield {"k": at % 5, "n": at, "ts": at * 100_000}, at + 1
            n += 20
            yield None
        while True:
            yield None

    return ef.from_generator(generated, partitions=partitions, event_time="ts")


def counted(stream):
    stream.key_by("k").window(ef.tumbling("1s")).aggregate(n=ef.count()).named("counts").write(ef.to_callback(lambda row: None))


def healthy(flow, folder):
    counted(flow.read(numbers(1)))


def stuck(flow, folder):
    """Build a flow whose function waits for a file."""
    file = folder / "gate"

    def wait(state, row):
        while not file.exists():
            time.sleep(0.05)
        return state, row

    flow.read(ef.generate(rate=2_000, keys=5)).key_by("key").stateful_map(wait).named("waits").write(ef.to_callback(lambda row: None))


def failing(flow, folder):
    """Build a flow whose sink can't commit."""

    def refuse(checkpoint, values):
        raise ConnectionError("the server is away")

    flow.read(ef.generate(rate=100, keys=5)).write(ef.to_function(len, commit=refuse))


def messy(flow, folder):
    """Build a flow that drops records, and in which a partition holds event time back."""

    def odd(row):
        if row["n"] % 7 == 0:
            raise ValueError("a seventh")
        return row

    counted(flow.read(numbers(2)).map(odd, on_error="skip").named("odd"))


def lost(flow, folder):
    flow.read(ef.generate(rate=100, keys=5)).write(ef.to_callback(lambda row: None))


EXPECTED = [
    ("EvenflowJobLost", "lost"),
    ("EvenflowRestartLoop", "failing"),
    ("EvenflowNoCheckpoint", "stuck"),
    ("EvenflowNoProgress", "stuck"),
    ("EvenflowLagGrows", "stuck"),
    ("EvenflowWatermarkStands", "messy"),
    ("EvenflowDeadLetters", "messy"),
]


@pytest.fixture
def jobs(cluster, tmp_path):
    """Run the jobs; provide them by name."""
    running = {}
    try:
        for build in (healthy, stuck, failing, messy, lost):
            flow, interval = ef.Dataflow(build.__name__), "10s" if build is healthy else "200ms"
            build(flow, tmp_path)
            folder = None if build is lost else str(tmp_path / "checkpoints")
            running[flow.name] = flow.run(
                config=ef.JobConfig(
                    checkpoint=ef.CheckpointConfig(folder, interval=interval),
                    metrics=ef.MetricsConfig(window="200ms"),
                    restart=ef.RestartConfig("fixed", delay="200ms", most=100_000),
                )
            )
        yield running
    finally:
        (tmp_path / "gate").touch()
        for job in running.values():
            with suppress(ef.JobError):
                job.cancel()
            with suppress(ef.JobError):
                job.wait("60s")


def scrape(url):
    """Return what a target answers, None if it can't be reached."""
    try:
        with urlopen(url, timeout=patience(20)) as answer:
            return answer.read().decode()
    except (URLError, ConnectionError):
        return None


@pytest.mark.timeout(900)
def test_alerts_fire_for_jobs_with_a_fault_and_not_for_a_healthy_one(jobs, tmp_path):
    recorded, urls = Recorded(), {name: job.metrics_url for name, job in jobs.items()}
    process = pid(jobs["lost"], "coordinator")

    def unlike(alerts, among):
        return complaints(tmp_path, recorded.series(), alerts, f"{recorded.rounds - 1}m", among)

    def silent():
        return [one for one in EXPECTED if unlike([one], ', alertname="{}", job="{}"'.format(*one))]

    def all_fire():
        recorded.add({name: scrape(url) for name, url in urls.items()}, SLOWER)
        if recorded.rounds == FIRST_LOOK // 2:
            os.kill(process, signal.SIGKILL)
        time.sleep(ROUND)
        return recorded.rounds >= FIRST_LOOK and not silent()

    until(all_fire, lambda: f"all fire; these don't: {silent()}", patience(120))
    assert unlike([], ', job="healthy"') == ""
