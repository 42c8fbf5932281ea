"""Kafka records that can't be decoded stop the job, are dropped, or become dead letters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka_broker import fill, make_topic
from kafka_jobs import numbers, objects, read

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "bad", [b"{", b"5", b"null", b"", b'{"n": 1}{"n": 2}', b'{"n": "x"}', b'[{"n": 1}]', b'{"n": 1}\n{"n": 2}', b'{"t": "\xff"}']
)
def test_record_that_can_not_be_decoded_stops_the_job_or_is_skipped(bootstrap, bad):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (None, bad), *objects(3)]})

    with pytest.raises(ef.RecordError, match=r"a record can't be decoded: .*\(partition 0 of topic `.*`, offset 1\)"):
        read(bootstrap, topic, schema={"n": "int64", "t": "string"})

    assert numbers(read(bootstrap, topic, schema={"n": "int64", "t": "string"}, on_error="skip", columns=["offset"])) == [1, 3]


def test_records_that_can_not_be_decoded_become_dead_letters(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (b"k", b"{"), *objects(3), (None, b'{"n": 4}')]})
    flow, rows, letters = ef.Dataflow("f"), list[dict[str, Any]](), list[dict[str, Any]]()
    stream = flow.read(ef.read_kafka(topic, bootstrap=bootstrap, until="now", event_time="ts", on_error="dead_letter"))
    stream.write(ef.to_list(rows)).dead_letters.write(ef.to_list(letters, name="letters"))
    job = flow.run(runtime="local")
    job.wait("60s")

    assert numbers(rows) == [1, 3]
    records = [json.loads(letter["record"]) for letter in letters]
    assert [(record["offset"], record["key"], record["value"]) for record in records] == [
        (1, b"k".hex(), b"{".hex()),
        (3, None, b'{"n": 4}'.hex()),
    ]
    assert {(letter["operator"], letter["error"], letter["key"]) for letter in letters} == {("read_kafka", "RecordError", None)}
    assert job.metrics()[0].skipped_records == 2


def test_dead_letters_without_a_reader_are_refused(bootstrap):
    flow = ef.Dataflow("f")
    flow.read(ef.read_kafka("clicks", bootstrap=bootstrap, on_error="dead_letter")).write(ef.to_list([]))
    with pytest.raises(ef.FlowError, match="dead_letters"):
        flow.run(runtime="local")


def test_values_that_only_together_look_like_as_many_objects_are_not_mixed_up(bootstrap):
    topic = make_topic(bootstrap)
    values = [b'{"n": 0}', b'{"n": 1}\n{"n": 2}', b'{"n":', b"3}", b'{"n": 4}']
    fill(bootstrap, topic, {0: [(None, value) for value in values]})

    rows = read(bootstrap, topic, schema={"n": "int64"}, on_error="skip", columns=["offset"])

    assert [(row["n"], row["offset"]) for row in rows] == [(0, 0), (4, 4)]


def test_record_without_event_time_is_skipped(bootstrap):
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (None, b'{"n": 2}'), (None, None), *objects(4)]})

    assert numbers(read(bootstrap, topic, event_time="ts", on_error="skip")) == [1, 4]
    with pytest.raises(ef.RecordError, match=r"its event time `ts` is missing"):
        read(bootstrap, topic, event_time="ts")


def test_field_that_is_not_among_the_inferred_columns_is_refused(bootstrap, monkeypatch):
    monkeypatch.setattr("evenflow.connectors.kafka.reading.read_plan.MOST_RECORDS", 1)
    topic = make_topic(bootstrap)
    fill(bootstrap, topic, {0: [*objects(1), (None, b'{"n": 1, "new": 2}')]})

    with pytest.raises(ef.RecordError, match=r"unexpected field.*schema="):
        read(bootstrap, topic)
