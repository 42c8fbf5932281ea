"""The service of the documentation is killed, started again, stopped with a savepoint, changed and started again: every visit is in
PostgreSQL and in the Iceberg table once, and the alert rules say when the job is lost. Kafka, PostgreSQL and the object store are real
servers, and the Ray cluster has its own environment, with the secrets.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import boto3
import psycopg
import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from patience import patience
from ports import free_port
from postgres_server import postgres_server
from promtool import RULES, Recorded, complaints
from pyiceberg.catalog import load_catalog
from ray_node import ray_node
from ray_settings import RAY_SETTINGS
from s3_server import BUCKET, s3_server
from watching import processes_of, until

from evenflow.bench.kafka import broker

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[3]
EXAMPLE, PAGE = ROOT / "examples" / "service.py", ROOT / "docs" / "how-to/service.md"
PATIENCE = patience(120)
MINUTE = 60_000
GAP = 15 * MINUTE
SECRET = "d1fficult-to-guess"
USERS, PARTITIONS = 40, 3
TABLE = 'CREATE TABLE visits ("user" text, window_start timestamptz, window_end timestamptz, clicks bigint, pages bigint)'


@dataclass
class Service:
    """The servers of the service, the environment of its processes, and the clicks so far."""

    variables: dict[str, str]
    database: str
    bucket: Any
    own: Path
    now: int = 1_700_000_000_000
    clicks: list[tuple[str, str, int]] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def visit(self, rounds: int) -> None:
        """Produce clicks: in a round, each user clicks once or more often, and then none does for as long as a visit lasts at most."""
        producer = Producer({"bootstrap.servers": self.variables["KAFKA"], "acks": "all", "enable.idempotence": True})
        for _ in range(rounds):
            for _ in range(self.chance.randint(1, 3)):
                for number in range(USERS):
                    self.now += self.chance.randint(1, 5_000)
                    click = {"user": f"user-{number}", "page": f"page-{self.chance.randint(0, 4)}", "at": self.now}
                    self.clicks.append((click["user"], click["page"], click["at"]))
                    producer.produce("clicks", json.dumps(click), partition=number % PARTITIONS)
            self.now += GAP + self.chance.randint(1, MINUTE)
        assert producer.flush(PATIENCE) == 0

    @contextmanager
    def program(self, text: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """Run a program, which must have ended when the block ends."""
        place = self.own / "program.py"
        place.write_text(text)
        command = [sys.executable, "-W", "ignore", str(place)]
        environment = self.variables | variables
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def command(self, *words: str) -> None:
        line = [sys.executable, "-W", "ignore", "-m", "evenflow", *words]
        done = subprocess.run(line, env=self.variables, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def visits(self, columns: str = '"user", window_start, clicks, pages') -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(f"SELECT {columns} FROM visits").fetchall()

    def tabled(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return the rows of the Iceberg table."""
        uri = self.database.replace("postgresql:", "postgresql+psycopg:")
        store = {"s3.endpoint": self.variables["AWS_ENDPOINT_URL"], "s3.region": self.variables["AWS_DEFAULT_REGION"]}
        catalog = load_catalog("shop", type="sql", uri=uri, warehouse=self.variables["WAREHOUSE"], **store)
        rows = catalog.load_table("shop.visits").scan().to_arrow().to_pylist()
        catalog.close()
        return [tuple(row[name] for name in columns) for row in rows]

    def metrics(self) -> str:
        """Return what the job tells Prometheus."""
        with urlopen(f"http://127.0.0.1:{self.variables['EVENFLOW_METRICS_PORT']}/metrics", timeout=PATIENCE) as answer:
            found: str = answer.read().decode()
            return found

    def await_visits(self, process: subprocess.Popen[str], more_than: int) -> int:
        """Wait until the service has written more visits; return their number."""

        def more() -> bool:
            assert process.poll() is None, process.communicate()[0]
            return len(self.visits("1")) > more_than

        until(more, f"there are more than {more_than} visits", PATIENCE)
        return len(self.visits("1"))


@pytest.fixture
def service(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    own = folder / "service"
    own.mkdir()
    with ExitStack() as servers:
        kafka = servers.enter_context(broker.kafka_broker(None))
        admin = AdminClient({"bootstrap.servers": kafka})
        admin.create_topics([NewTopic("clicks", PARTITIONS, 1)])["clicks"].result(PATIENCE)
        postgres = servers.enter_context(postgres_server())
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE shop LOGIN SUPERUSER")
            connection.execute(TABLE)
        keys = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
        endpoint = servers.enter_context(s3_server())
        for name, value in keys.items():
            monkeypatch.setenv(name, value)
        bucket = boto3.resource("s3", endpoint_url=endpoint).Bucket(BUCKET)
        gcs = free_port()
        place = {"TMPDIR": str(own), **RAY_SETTINGS, **keys, "AWS_ENDPOINT_URL": endpoint}
        login = {"PG_ADDRESS": f"/postgres?host={postgres.url.partition('host=')[2]}", "PG_PASSWORD": SECRET}
        variables = (
            {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
            | place
            | login
            | {"KAFKA": kafka, "WAREHOUSE": "s3://bucket/tables"}
        )
        head = ["--head", f"--port={gcs}", "--num-cpus=8", "--include-dashboard=false"]
        servers.enter_context(ray_node(own / "head.log", head, variables))
        until(lambda: "Ray runtime started" in (own / "head.log").read_text(), "the head is up", PATIENCE)
        ours = {"EVENFLOW_CHECKPOINT": "s3://bucket/jobs", "EVENFLOW_METRICS_PORT": str(free_port())}
        variables |= ours | {"RAY_ADDRESS": f"127.0.0.1:{gcs}"}
        yield Service(variables, postgres.url, bucket, own)
    until(lambda: not processes_of(own), f"no process is left: {processes_of(own)}")


def sessions(clicks: list[tuple[str, str, int]]) -> list[tuple[str, int, int, int]]:
    """Return user, start, number of clicks and of different pages of every visit."""
    of_user = defaultdict(list)
    for user, page, at in clicks:
        of_user[user].append((at, page))
    found = []
    for user, mine in of_user.items():
        visits = [[mine[0]]]
        for click in mine[1:]:
            if click[0] - visits[-1][-1][0] >= GAP:
                visits.append([])
            visits[-1].append(click)
        found += [(user, visit[0][0], len(visit), len({page for _, page in visit})) for visit in visits]
    return sorted(found)


def named_by_rules() -> set[str]:
    """Return the metrics of jobs that the alert rules name."""
    expressions = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    return set(re.findall(r"\bevenflow_\w+(?!\w|!?=)", " ".join(expressions)))


def in_milliseconds(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((user, round(start.timestamp() * 1000), *rest) for user, start, *rest in rows)


@pytest.mark.timeout(600)
def test_a_service_that_is_killed_stopped_and_changed_has_every_visit_once(service):
    program = EXAMPLE.read_text()
    assert program.partition("annotations\n\n")[2] in PAGE.read_text()
    assert TABLE in PAGE.read_text()
    program = program.replace('interval="5s"', 'interval="500ms"')
    service.visit(6)
    recorded, done = Recorded(), 0

    def firing(*alerts: tuple[str, str]) -> str:
        """Return promtool's complaints unless exactly these alerts fire. A scrape counts as a minute."""
        return complaints(service.own, recorded.series(), alerts, f"{recorded.rounds - 1}m")

    with service.program(program) as first:
        for _ in range(3):
            done = service.await_visits(first, done)
            recorded.add({"visits": service.metrics()}, 1)
            service.visit(1)
        assert 'evenflow_job_state{job="visits",state="running"} 1.0' in service.metrics()
        served = set(re.findall(r"^# TYPE (\w+)", service.metrics(), re.MULTILINE))
        assert len(named_by_rules()) > 10
        assert named_by_rules() <= served
        service.command("grafana", "--output", str(service.own / "monitoring"))
        assert (service.own / "monitoring/alerts.yml").read_text() == RULES.read_text()
        assert firing() == ""
        first.send_signal(signal.SIGKILL)
    for _ in range(4):
        recorded.add({"visits": None}, 1)
    assert firing(("EvenflowJobLost", "visits")) == ""
    service.visit(6)
    with service.program(program) as second:
        done = service.await_visits(second, done + 4 * USERS)
        recorded.add({"visits": service.metrics()}, 1)
        assert firing() == ""
        service.command("stop", "visits", "--savepoint", "s3://bucket/saved")
        printed, _ = second.communicate(timeout=PATIENCE)
        assert second.returncode == 0, printed
        assert "continues its run from checkpoint" in printed
    service.visit(6)
    with psycopg.connect(service.database, autocommit=True) as connection:
        connection.execute("ALTER TABLE visits ADD COLUMN last_page text")
    changed = program.replace('pages=ef.count_distinct("page")', 'pages=ef.count_distinct("page"), last_page=ef.last("page")')
    changed = changed.replace("flow.run(", 'flow.run(from_savepoint="s3://bucket/saved", allow_new_state=True, ')
    with service.program(changed, EVENFLOW_CHECKPOINT="s3://bucket/changed") as third:
        service.await_visits(third, done + 4 * USERS)
        service.command("stop", "visits", "--drain")
        printed, _ = third.communicate(timeout=PATIENCE)
        assert third.returncode == 0, printed
    columns = ("user", "window_start", "clicks", "pages")
    assert in_milliseconds(service.visits()) == sessions(service.clicks)
    assert in_milliseconds(service.tabled(*columns)) == sessions(service.clicks)
    assert any(page for (page,) in service.visits("last_page"))
    assert in_milliseconds(service.visits('"user", window_start, last_page')) == in_milliseconds(service.tabled(*columns[:2], "last_page"))
    stored = [each.key.encode() + each.get()["Body"].read() for each in service.bucket.objects.all()]
    assert stored
    assert not any(SECRET.encode() in each for each in stored)
