"""Programs of the documentation start jobs in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import evenflow as ef
from evenflow.job import Job


@pytest.fixture
def jobs(monkeypatch, tmp_path) -> Iterator[list[Job]]:
    """Run the jobs that snippets start in this process and in a folder of their own; they end with the test."""
    started: list[Job] = []
    run = ef.Dataflow.run

    def run_here(flow: ef.Dataflow, **settings: Any) -> Job:
        started.append(run(flow, **{**settings, "runtime": "local", "detached": False}))
        return started[-1]

    monkeypatch.setattr(ef.Dataflow, "run", run_here)
    monkeypatch.setattr(ef, "connect", lambda name: next(job for job in started if job.name == name))
    monkeypatch.chdir(tmp_path)
    yield started
    for job in started:
        with suppress(ef.JobNotRunningError):
            job.cancel()
        job.wait("60s")
