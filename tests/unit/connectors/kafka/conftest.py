from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kafka_broker import kafka_broker

SLEEP = time.sleep


@pytest.fixture
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """Let a job's handle sleep while it polls for results."""
    monkeypatch.setattr(time, "sleep", SLEEP)


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Start one broker for all tests; each test creates its own topics."""
    with kafka_broker() as address:
        yield address
