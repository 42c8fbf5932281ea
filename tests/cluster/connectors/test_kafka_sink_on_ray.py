"""A job on Ray writes to Kafka while its workers, its coordinator and the process that commits are killed."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from operator import itemgetter

import psutil
import pytest
from kafka_broker import kafka_broker, make_topic
from watching import await_rows, pid, until

import evenflow as ef
from evenflow.bench.kafka.topics import records_of

RATE = 2_000
PLACES = 29
JOBS = []


@pytest.fixture(autouse=True)
def no_job_outlives_a_failed_test(nothing_outlives_its_test):
    yield
    while JOBS:
        JOBS.pop().cancel()


@pytest.fixture(scope="module")
def bootstrap():
    with kafka_broker() as address:
        yield address


def committing(job):
    """Return the process that commits for the job's sink; None if there is none."""
    children = psutil.Process(pid(job, "coordinator")).children()
    return next((child for child in children if any("commit_program" in word for word in child.cmdline())), None)


def places_of(rows):
    """Return the places with more than two users, and their users' numbers: a user's place is that of its newest row."""
    users = rows.key_by("key").aggregate(newest=ef.max("seq")).named("users")
    places = users.with_columns(place=ef.col("newest") % PLACES).key_by("place").aggregate(n=ef.count(), total=ef.sum("newest"))
    return places.named("places").filter(ef.col("n") > 2)


def expected_places(rows):
    newest = {row["key"]: row["seq"] for row in sorted(rows, key=itemgetter("seq"))}
    users = [(seq % PLACES, seq) for seq in newest.values()]
    counts = Counter(place for place, _ in users)
    totals = {place: sum(seq for at, seq in users if at == place) for place in counts}
    return {place: {"place": place, "n": n, "total": totals[place]} for place, n in counts.items() if n > 2}


def test_killed_workers_and_coordinators_do_not_change_what_readers_of_topics_see(bootstrap, tmp_path):
    topic, delivered = make_topic(bootstrap, partitions=3), []
    upserts = make_topic(bootstrap, partitions=2)
    flow = ef.Dataflow("to-kafka")
    rows = flow.read(ef.generate(rate=RATE, every="50ms", keys=100, string_keys=True))
    rows.write(ef.write_kafka(topic, bootstrap=bootstrap, key="key")).write(ef.to_list(delivered))
    places_of(rows).write(ef.write_kafka(upserts, bootstrap=bootstrap, mode="upsert", key="place", name="upserts"))
    job = flow.run(
        config=ef.JobConfig(
            parallelism=2,
            checkpoint=ef.CheckpointConfig(str(tmp_path), interval="300ms"),
            restart=ef.RestartConfig(delay="10ms", most=1_000),
        )
    )
    JOBS.append(job)

    await_rows(job, delivered, RATE / 4)
    os.kill(until(lambda: committing(job), "a process commits").pid, signal.SIGKILL)
    await_rows(job, delivered, RATE / 4)
    os.kill(pid(job, "generate-0"), signal.SIGKILL)
    await_rows(job, delivered, RATE / 4)
    os.kill(pid(job, "coordinator"), signal.SIGKILL)
    await_rows(job, delivered, RATE / 4)
    for worker in ("generate-0", "generate-1"):
        os.kill(pid(job, worker), signal.SIGKILL)
    await_rows(job, delivered, RATE / 4)
    process = committing(job)
    job.stop(drain=True)
    job.wait("60s")

    found = [(key, json.loads(value)) for records in records_of(bootstrap, topic).values() for key, value in records]
    seqs = sorted(row["seq"] for _, row in found)
    for source in range(2):
        mine = [seq for seq in seqs if seq % 2 == source]
        assert mine == list(range(source, source + 2 * len(mine), 2)), "each row once, none missing"
    assert Counter(seqs) == Counter(row["seq"] for row in delivered)
    assert all(key == row["key"].encode() for key, row in found)
    messages = [message for records in records_of(bootstrap, upserts).values() for message in records]
    present = {int(key): json.loads(value) for key, value in dict(messages).items() if value is not None}
    assert present == expected_places(delivered)
    assert any(value is None for _, value in messages), "a place had too few users once"
    assert list(tmp_path.glob("to-kafka/staged-*/*.staged")) == []
    assert process is None or until(
        lambda: not process.is_running() or process.status() == "zombie", "the process that commits has ended", 90
    )
