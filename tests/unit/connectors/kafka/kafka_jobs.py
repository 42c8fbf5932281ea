"""Support for tests of the Kafka source: records, and jobs of this process that read them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from patience import patience

import evenflow as ef
from evenflow.job import Job


def until(condition: Callable[[], bool], seconds: float = patience(60)) -> None:
    """Wait until other threads have made the condition true."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        pause.wait(0.02)


def minutes_ago(minutes: int) -> datetime:
    """Return a whole minute in the recent past: a broker deletes records whose timestamps are a week old."""
    return datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=minutes)


def stamp(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def objects(*numbers: int, key: bytes | None = None) -> list[tuple[bytes | None, bytes | None]]:
    return [(key, json.dumps({"n": number, "ts": number}).encode()) for number in numbers]


def read(bootstrap: str, topics: str | Sequence[str], *, parallelism: int = 1, **more: Any) -> list[dict[str, Any]]:
    """Run a job to its end and return all rows."""
    flow, rows = ef.Dataflow("f"), list[dict[str, Any]]()
    flow.read(ef.read_kafka(topics, bootstrap=bootstrap, **{"until": "now", **more})).write(ef.to_list(rows))
    flow.run(runtime="local", parallelism=parallelism).wait("60s")
    return rows


def numbers(rows: Sequence[dict[str, Any]]) -> list[int]:
    return sorted(row["n"] for row in rows)


@contextmanager
def running(bootstrap: str, topic: str, rows: list[Any], **more: Any) -> Iterator[Job]:
    """Run a job that reads a topic endlessly, and cancel it in the end."""
    config = more.pop("config", ef.JobConfig())
    savepoint, parallelism = more.pop("from_savepoint", None), more.pop("parallelism", 1)
    flow = ef.Dataflow("f")
    flow.read(ef.read_kafka(topic, bootstrap=bootstrap, **more)).write(ef.to_callback(rows.append))
    job = flow.run(runtime="local", config=config, from_savepoint=savepoint, parallelism=parallelism)
    try:
        yield job
    finally:
        job.cancel()
