from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kafka_broker import kafka_broker

SLEEP = time.sleep


@pytest.fixture
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """A job's handle asks for news 20 times a second: it is it that sleeps, not the test."""
    monkeypatch.setattr(time, "sleep", SLEEP)


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """One broker for all tests; each makes topics of its own."""
    with kafka_broker() as address:
        yield address
