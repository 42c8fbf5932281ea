"""Fixtures for tests that run jobs."""

from __future__ import annotations

import time

import pytest

SLEEP = time.sleep


@pytest.fixture
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """A job's handle polls 20 times a second: it sleeps, not the test."""
    monkeypatch.setattr(time, "sleep", SLEEP)
