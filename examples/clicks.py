"""Clicks and purchases from Kafka: which click led to which purchase, and how long was each visit? Checked against Spark.

    pip install 'evenflow[kafka,delta]' noida-db
    python examples/clicks.py                                # starts a broker, noida-db
    python examples/clicks.py --bootstrap localhost:9092     # uses yours: topics `clicks-...` and `purchases-...`

The purchases go to Parquet files and the visits to a Delta Lake table. Spark computes both as a batch from the same events.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

import evenflow as ef

USERS, PARTITIONS = 200, 4
CLICK = {"user": "string", "page": "string", "at": "int64"}
PURCHASE = {"buyer": "string", "item": "string", "cents": "int64", "bought": "int64"}
Row = dict[str, Any]


def visits_and_purchases(bootstrap: str, clicks_topic: str, purchases_topic: str, folder: Path) -> ef.Dataflow:
    """Join a purchase with its buyer's clicks of the last 30 minutes; a visit ends after 15 minutes without clicks."""
    flow = ef.Dataflow("clicks")
    clicks = flow.read(
        ef.read_kafka(clicks_topic, bootstrap=bootstrap, schema=CLICK, event_time="at", until="now", name="read_clicks")
    ).key_by("user")
    purchases = flow.read(
        ef.read_kafka(purchases_topic, bootstrap=bootstrap, schema=PURCHASE, event_time="bought", until="now", name="read_purchases")
    ).key_by("buyer")
    led_to = clicks.join(purchases, ef.between("0s", "30m")).named("led_to")
    led_to.select("user", "page", "at", "item", "cents", "bought").write(ef.write_parquet(folder / "purchases"))
    visits = clicks.window(ef.session("15m")).aggregate(pages=ef.count_distinct("page"), clicks=ef.count())
    visits.write(ef.write_delta(folder / "visits"))
    return flow


def events(count: int, seed: int) -> tuple[list[Row], list[Row]]:
    """Return clicks and purchases in the order of their times, in milliseconds."""
    chance = random.Random(seed)  # noqa: S311 -- events, no secrets
    at = 1_700_000_000_000
    clicks, purchases = list[Row](), list[Row]()
    for number in range(count):
        at += chance.randint(0, 4_000)
        user = f"user-{int(USERS * chance.random() ** 2)}"
        clicks.append({"user": user, "page": f"/page/{chance.randint(0, 30)}", "at": at})
        if chance.random() < 0.1:
            price, bought = chance.randint(100, 99_999), at + chance.randint(0, 3_000)
            purchases.append({"buyer": user, "item": f"item-{number}", "cents": price, "bought": bought})
    purchases.sort(key=lambda row: row["bought"])
    return clicks, purchases


def produce(bootstrap: str, topic: str, rows: list[Row], key: str) -> None:
    """Create the topic and fill it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for row in rows:
        producer.produce(topic, json.dumps(row), row[key])
        producer.poll(0)
    if producer.flush(60):
        raise SystemExit(f"the broker at {bootstrap} did not take all records within a minute")


def check(spark: SparkSession, folder: Path, clicks: list[Row], purchases: list[Row]) -> None:
    """Compare evenflow's output with Spark's result from the same events."""
    spark.createDataFrame(clicks).createOrReplaceTempView("clicks")
    spark.createDataFrame(purchases).createOrReplaceTempView("purchases")
    expected = spark.sql(
        "SELECT user, page, at, item, cents, bought FROM clicks JOIN purchases ON user = buyer AND bought BETWEEN at AND at + 1800000"
    )
    compare("purchases", spark.read.parquet(str(folder / "purchases")), expected)
    expected = spark.sql(
        """
        SELECT user, count(DISTINCT page) AS pages, count(*) AS clicks, unix_millis(session_window.start) AS begins
        FROM (SELECT *, timestamp_millis(at) AS time FROM clicks) GROUP BY user, session_window(time, '15 minutes')
        """
    )
    # PySpark doesn't include Delta's reader: the table's log lists the valid files.
    visits = spark.read.parquet(*DeltaTable(str(folder / "visits")).file_uris())
    compare("visits", visits.selectExpr("user", "pages", "clicks", "unix_millis(window_start) AS begins"), expected)


def compare(what: str, found: DataFrame, expected: DataFrame) -> None:
    """Exit with an error unless both have the same rows."""
    missing, wrong = expected.exceptAll(found).count(), found.exceptAll(expected).count()
    print(f"{what}: {found.count():,} rows; compared with Spark's {missing} are missing and {wrong} are wrong")
    if missing or wrong:
        raise SystemExit(1)


@contextmanager
def broker(bootstrap: str | None) -> Iterator[str]:
    """Yield the address of a broker: the named one, or one that ends with the block."""
    if bootstrap is not None:
        yield bootstrap
        return
    try:
        program = str(files("noida_db") / "noida-db")
    except ModuleNotFoundError:
        raise SystemExit("name a broker with --bootstrap HOST:PORT, or install one: pip install noida-db") from None
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "start", "--only", "kafka", "--kafka-port", str(port), "--data-dir", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 -- the package's own program
        try:
            wait_for(f"127.0.0.1:{port}")
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def wait_for(bootstrap: str) -> None:
    """Return once the broker answers."""
    until, admin = time.monotonic() + 30, AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    while True:
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            if time.monotonic() > until:
                raise SystemExit(f"the broker at {bootstrap} did not answer within 30 s") from None
        else:
            return


def main() -> None:
    """Run the whole example."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bootstrap", help="the address of a Kafka broker (default: start one)")
    arguments.add_argument("--clicks", type=int, default=50_000, help="default: %(default)s")
    arguments.add_argument("--seed", type=int, default=0, help="seed of the events (default: %(default)s)")
    arguments.add_argument("--local", action="store_true", help="run in a thread of this process, without Ray")
    given = arguments.parse_args()
    clicks, purchases = events(given.clicks, given.seed)
    with broker(given.bootstrap) as bootstrap, tempfile.TemporaryDirectory(prefix="clicks-") as name:
        folder, run = Path(name), uuid.uuid4().hex[:8]
        produce(bootstrap, f"clicks-{run}", clicks, "user")
        produce(bootstrap, f"purchases-{run}", purchases, "buyer")
        print(f"{len(clicks):,} clicks and {len(purchases):,} purchases are in Kafka")
        flow = visits_and_purchases(bootstrap, f"clicks-{run}", f"purchases-{run}", folder)
        config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(folder / "checkpoints", interval="1s"))
        flow.run(runtime="local" if given.local else "ray", config=config).wait()
        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = session.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
        spark = session.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "4").getOrCreate()
        try:
            check(spark, folder, clicks, purchases)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
