"""NexMark's queries read their streams from topics of Kafka, and emit the rows of DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest
from kafka_broker import kafka_broker

import evenflow as ef
from evenflow.bench.kafka.topics import READS_ALL, produce, topics
from evenflow.bench.nexmark.check import compare, connect
from evenflow.bench.nexmark.data import BLOCK, CSV_SCHEMAS, make, pieces
from evenflow.bench.nexmark.queries import QUERIES
from evenflow.bench.nexmark.queries.events import Events, side_table
from evenflow.connectors.nexmark.numbering import Numbering
from evenflow.connectors.nexmark.schemas import SCHEMAS
from evenflow.connectors.nexmark.source import STREAMS

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

EVENTS = 20_000


@pytest.fixture(scope="module")
def bootstrap():
    with kafka_broker() as address:
        yield address


@pytest.fixture(scope="module")
def names(bootstrap):
    """Create a topic for each stream. A partition has every other block of events, in order."""
    with topics(bootstrap, STREAMS) as names:
        for stream in STREAMS:
            rows = pa.Table.from_batches(pieces(stream, 0, Numbering(stream).rows_before(EVENTS))).cast(CSV_SCHEMAS[stream])
            produce(bootstrap, names[stream], rows.to_batches(max_chunksize=BLOCK))
        yield names


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    with connect(make(tmp_path_factory.mktemp("events"), EVENTS, lambda _: None).folder / "parquet") as database:
        yield database


@pytest.mark.parametrize("query", ["q1", "q4", "q5", "q8", "q18"])
def test_nexmark_gives_the_rows_of_duckdb(query, bootstrap, names, oracle, tmp_path):
    def stream(name):
        types = {field.name: str(field.type) for field in CSV_SCHEMAS[name]}
        times = {field.name: field.type for field in SCHEMAS[name] if pa.types.is_timestamp(field.type)}
        source = ef.read_kafka(
            names[name], bootstrap=bootstrap, until="now", schema=types, event_time="dateTime", options=READS_ALL, name=name
        )
        return lambda: flow.read(source).cast(times)

    flow = ef.Dataflow(f"nexmark-{query}")
    QUERIES[query](Events(*map(stream, STREAMS), side_table())).write(ef.write_parquet(tmp_path))
    config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(interval=None))
    flow.run(runtime="local", config=config).wait()
    rows, missing, wrong = compare(oracle, query, tmp_path)
    assert rows
    assert (missing, wrong) == (0, 0)
