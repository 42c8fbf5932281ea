"""Fixtures for tests that run jobs."""

from __future__ import annotations

import time

import pytest

SLEEP = time.sleep


@pytest.fixture
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """Let a job's handle sleep between its polls, 20 times a second."""
    monkeypatch.setattr(time, "sleep", SLEEP)
