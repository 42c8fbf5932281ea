"""A program whose functions and libraries quote its secrets wherever they can: in log records, on stderr, in errors of records and of
jobs. `test_secrets_on_ray.py` runs it, and searches everything that it leaves. Argument: the folder for its output.
"""

from __future__ import annotations

import base64
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from confluent_kafka import Producer
from ray import cloudpickle

import evenflow as ef
from evenflow.recording.file import Recording
from evenflow.scheduler.protocol.requests import ShowView

OWN = Path(sys.argv[1])
PATIENCE = float(sys.argv[2])
ROWS = 200
PASSWORD = ef.secret("env:SHOP_PASSWORD")
KAFKA = {"bootstrap": os.environ["KAFKA"], "options": {"sasl.password": PASSWORD}}
RESTART = ef.RestartConfig(most=1, delay="10ms")


def unlucky(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row, unless a library refuses it. It quotes the secret in each form."""
    secret = os.environ["SHOP_PASSWORD"]
    if row["n"] == 1:
        logging.getLogger("library").warning("log: connecting as shop with %s", secret)
        sys.stderr.write(f"debug: {secret}, {quote(secret, safe='')}\n")
        thread = threading.Thread(target=unlucky, args=({"n": 7},))
        thread.start()
        thread.join()
    if row["n"] % 7 == 0:
        login = base64.b64encode(f"shop:{secret}".encode()).decode()
        raise ValueError(f"401: Authorization: Basic {login} at https://shop:{quote(secret, safe='')}@host, password {secret!r}")
    return row


def last(state: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Fail for good at the end of the stream."""
    if row["n"] == -1:
        raise ConnectionError("can't log in", {"password": os.environ["SHOP_PASSWORD"]})
    return (state or 0) + 1, {"n": row["n"], "seen": state or 0}


def table(login: str) -> str:
    return f"postgresql://shop:{login}@/postgres?host={os.environ['PG_FOLDER']}"


def wait_until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def produce(numbers: Any) -> None:
    producer = Producer({"bootstrap.servers": KAFKA["bootstrap"]})
    for number in numbers:
        producer.produce("orders", f'{{"n": {number}}}', b"k")
    assert producer.flush(PATIENCE) == 0


def orders() -> None:
    """Run a job from Kafka into Kafka, PostgreSQL and files with all that shows it, until its function fails."""
    flow = ef.Dataflow("orders")
    rows = flow.read(ef.read_kafka("orders", schema={"n": "int64"}, **KAFKA)).map(unlucky, on_error="dead_letter").named("unlucky")
    rows.dead_letters.write(ef.write_json(OWN / "dead"))
    counted = rows.key_by("n").stateful_map(last).named("last")
    counted.write(ef.write_kafka("counted", **KAFKA)).write(ef.write_sql(table(PASSWORD), "counted"))
    checkpoint = ef.CheckpointConfig("s3://bucket/jobs", interval="500ms")
    config = ef.JobConfig(parallelism=2, checkpoint=checkpoint, restart=RESTART)
    (OWN / "explained").write_text(flow.explain(config=config))
    (OWN / "plan").write_bytes(cloudpickle.dumps(flow.plan(config=config)))
    job = flow.run(config=config)
    recording = [sys.executable, "-W", "ignore", "-m", "evenflow", "record", "orders", str(OWN / "recording")]
    with subprocess.Popen(recording, stdout=subprocess.DEVNULL) as recorder:
        produce(range(ROWS))
        wait_until(lambda: sum(file.read_text().count("\n") for file in (OWN / "dead").glob("*.json")) >= ROWS // 7)
        wait_until(lambda: job.savepoint("s3://bucket/saved"))
        with urlopen(wait_until(lambda: job.status().metrics_url)) as answer:
            (OWN / "metrics").write_bytes(answer.read())
        (OWN / "view").write_bytes(pickle.dumps(job._runtime.ask(ShowView())))
        wait_until(recorded)
        produce([-1])
        fails(lambda: job.wait(PATIENCE))
        (OWN / "status").write_text(repr(job.status()))
        recorder.wait(PATIENCE)


def recorded() -> bool:
    """Return True once the recording has a view of the job."""
    with suppress(ef.EvenflowError):  # it has none yet
        return bool(Recording(OWN / "recording").times)
    return False


def fails(act: Callable[[], Any]) -> None:
    """Write the error that `act` raises, with its causes, as a notebook would show it, and as a log."""
    try:
        act()
    except Exception as error:
        logging.getLogger(__name__).exception("failed as it must")
        sys.stdout.write(f"FAILED {type(error).__name__}\n{traceback.format_exc()}\n")
    else:
        raise AssertionError("it must fail")


def run(sink: Any, source: Any = None, **checkpoint: Any) -> Any:
    flow = ef.Dataflow("small")
    flow.read(source or ef.generate(rate=500, every="20ms", keys=5)).write(sink)
    return flow.run(config=ef.JobConfig(parallelism=1, checkpoint=ef.CheckpointConfig(**checkpoint), restart=RESTART))


def broken_delta() -> None:
    """Break a Delta table while a job writes into it."""
    job = run(ef.write_delta(OWN / "delta"), dir=str(OWN / "checkpoints"), interval="300ms")
    log = OWN / "delta" / "_delta_log"
    wait_until(lambda: log.exists() and any(log.glob("*.json")))
    log.rename(OWN / "moved")
    log.write_text("no folder")
    job.wait(PATIENCE)


def main() -> None:
    orders()
    fails(lambda: run(ef.write_sql(table(ef.secret("env:WRONG_PASSWORD")), "counted")))
    fails(lambda: run(ef.write_sql(ef.secret("env:BROKEN_URL"), "counted")))
    fails(lambda: run(ef.to_list([]), ef.read_kafka("orders", **(KAFKA | {"options": {"security.protocol": PASSWORD}}))))
    fails(broken_delta)
    (OWN / "locked").touch()
    wait_until((OWN / "go").exists)  # from now on the object store refuses the key
    fails(lambda: run(ef.write_parquet("s3://bucket/out"), dir="s3://bucket/jobs").wait(PATIENCE))
    unlucky({"n": 7})


if __name__ == "__main__":
    main()
