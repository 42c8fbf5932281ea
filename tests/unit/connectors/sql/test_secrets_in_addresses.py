"""Sources and sinks connect with secrets that nothing else of a job contains."""

from __future__ import annotations

import logging
import pickle
import time

import psycopg
import pytest
from schema_registry import schema_registry

import evenflow as ef
from evenflow.connectors.avro.registry import SchemaRegistry
from evenflow.engine.errors import ConnectorError

SLEEP, USER = time.sleep, "odd user: 7/8@9"


@pytest.fixture(autouse=True)
def polling(monkeypatch):
    monkeypatch.setattr(time, "sleep", SLEEP)  # the job's handle polls


@pytest.fixture
def database(postgres, monkeypatch):
    """Create a table and a user with an odd name."""
    with psycopg.connect(postgres.url, autocommit=True) as database:
        database.execute("DROP TABLE IF EXISTS kept")
        database.execute(f'DROP ROLE IF EXISTS "{USER}"')
        database.execute(f'CREATE ROLE "{USER}" LOGIN SUPERUSER')
        database.execute("CREATE TABLE kept (item bigint)")
    monkeypatch.setenv("SHOP_USER", USER)
    yield postgres
    with psycopg.connect(postgres.url, autocommit=True) as database:
        database.execute(f'DROP TABLE kept; DROP TABLE IF EXISTS evenflow_commits; DROP ROLE "{USER}"')


@pytest.mark.slow
def test_a_table_is_written_with_a_secret_that_is_in_no_plan_explanation_checkpoint_or_log(database, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    url = database.url.replace("postgres@", f"{ef.secret('env:SHOP_USER')}@")
    flow = ef.Dataflow("shop")
    sink = ef.write_sql(url, "kept")
    flow.read(ef.from_items([1, 2, 3])).write(sink)
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(tmp_path))
    flow.run(runtime="local", config=config).wait("60s")
    with psycopg.connect(database.url) as connection:
        assert sorted(connection.execute("SELECT item FROM kept").fetchall()) == [(1,), (2,), (3,)]
        assert connection.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'evenflow_commits'").fetchone() == (USER,)
    files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    texts = [caplog.text.encode(), flow.explain(config=config).encode(), pickle.dumps(sink), *files]
    assert files
    for form in (USER, "odd%20user"):
        assert not any(form.encode() in text for text in texts)


@pytest.mark.slow
def test_an_error_of_the_database_does_not_quote_it(database, monkeypatch):
    monkeypatch.setenv("SHOP_USER", "nobody-of-that-name")
    flow = ef.Dataflow("shop")
    flow.read(ef.from_items([1])).write(ef.write_sql(database.url.replace("postgres@", f"{ef.secret('env:SHOP_USER')}@"), "kept"))
    with pytest.raises(ConnectorError, match=r'role "\*\*\*" does not exist') as caught:
        flow.run(runtime="local").wait("60s")
    assert "nobody-of-that-name" not in str(caught.value)


def test_the_whole_address_may_be_a_secret(database, monkeypatch):
    monkeypatch.setenv("SHOP_URL", database.url)
    flow = ef.Dataflow("shop")
    flow.read(ef.from_items([7])).write(ef.write_sql(ef.secret("env:SHOP_URL"), "kept"))
    flow.run(runtime="local").wait("60s")
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT item FROM kept").fetchall() == [(7,)]


def test_a_schema_registry_is_asked_with_a_secret(monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", "p@ss:word")
    with schema_registry(login="me:p@ss:word") as registry:
        number = registry.add("orders", '"long"')
        host = registry.url.partition("://")[2]
        client = SchemaRegistry(f"http://me:{ef.secret('env:SHOP_PASSWORD')}@{host}", "read_kafka")
        assert client.schema(number) is not None
        assert b"p@ss" not in pickle.dumps(client)
