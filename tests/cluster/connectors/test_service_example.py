"""The service of the documentation is killed, started again, stopped with a savepoint, changed and started again: every visit is in
PostgreSQL once. Kafka, PostgreSQL and the object store are real servers, and the Ray cluster has its own environment, with the secrets.
"""

from __future__ import annotations

import json
import os
import random
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
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from patience import patience
from ports import free_port, listens
from postgres_server import postgres_server
from ray_node import ray_node
from ray_settings import RAY_SETTINGS
from s3_server import BUCKET, s3_server
from watching import processes_of, until

from evenflow.bench.kafka import broker

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
        variables = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | place | login | {"KAFKA": kafka}
        head = ["--head", f"--port={gcs}", "--num-cpus=8", "--include-dashboard=false"]
        servers.enter_context(ray_node(own / "head.log", head, variables))
        until(lambda: listens(gcs), "the head is up", PATIENCE)
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


@pytest.mark.timeout(600)
def test_a_service_that_is_killed_stopped_and_changed_has_every_visit_once(service):
    program = EXAMPLE.read_text()
    assert program.partition("annotations\n\n")[2] in PAGE.read_text()
    assert TABLE in PAGE.read_text()
    program = program.replace('interval="5s"', 'interval="500ms"')
    service.visit(6)
    with service.program(program) as first:
        done = service.await_visits(first, 0)
        with urlopen(f"http://127.0.0.1:{service.variables['EVENFLOW_METRICS_PORT']}/metrics") as answer:
            assert 'evenflow_job_state{job="visits",state="running"} 1.0' in answer.read().decode()
        first.send_signal(signal.SIGKILL)
    service.visit(6)
    with service.program(program) as second:
        done = service.await_visits(second, done + 4 * USERS)
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
    found = sorted((user, round(start.timestamp() * 1000), clicks, pages) for user, start, clicks, pages in service.visits())
    assert found == sessions(service.clicks)
    assert any(page for (page,) in service.visits("last_page"))
    stored = [each.key.encode() + each.get()["Body"].read() for each in service.bucket.objects.all()]
    assert stored
    assert not any(SECRET.encode() in each for each in stored)
