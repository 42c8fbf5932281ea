from __future__ import annotations

import time
from itertools import product

import pytest

from evenflow.bench import sql
from evenflow.bench.errors import BenchmarkError
from evenflow.bench.postgres_server import postgres_server

SLEEP = time.sleep


@pytest.fixture(autouse=True)
def the_handle_may_poll(no_waiting_and_no_cluster, monkeypatch):
    """A job's handle asks for news 20 times a second: it is it that sleeps, not the test."""
    monkeypatch.setattr(time, "sleep", SLEEP)
    monkeypatch.setattr(sql.machine, "busy_share", lambda: 0.0)


def test_the_client_and_evenflow_write_all_rows():
    with postgres_server() as server:
        found = [sql._measured(server.url, *case, 3_000) for case in product(sql.DATABASES, sql.MODES, sql.WRITERS)]
    assert len(found) == 8
    assert all(each["seconds"] > 0 for each in found)


def test_rows_that_are_missing_fail_the_run():
    with sql._database("", "sqlite", "append") as database:
        database.write(list(sql._batches(10))[:1])
        with pytest.raises(BenchmarkError, match="10 of 20 rows"):
            sql._check(database, 20)
