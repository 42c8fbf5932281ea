"""Secrets of a program whose functions and libraries quote them: none is in anything that its processes leave.

Kafka, PostgreSQL and the object store are real servers, and the Ray cluster has its own environment, with the secrets.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from moto import settings
from patience import patience
from ports import free_port, listens
from postgres_server import postgres_server
from ray_node import ray_node
from ray_settings import RAY_SETTINGS
from s3_server import BUCKET, s3_server
from watching import SUPPORT, processes_of, until

from evenflow.bench.kafka import broker
from evenflow.page.replay import Replay
from evenflow.recording.file import Recording

PATIENCE = patience(240)

SECRETS = {
    "SHOP_PASSWORD": "d1fficult/to+guess",
    "WRONG_PASSWORD": "n0t-the/right+one",
    "BROKEN_URL": "postgresql://shop:br0k%zzen-t0ken@/postgres",
    "AWS_SECRET_ACCESS_KEY": "a-key/th4t+nobody-knows",
}


def forms(secret: str) -> list[bytes]:
    """Return the forms of a secret by which it would be known."""
    plain = [secret, "br0k%zzen-t0ken"] if "://" in secret else [secret]
    logins = [base64.b64encode(f"{user}:{each}".encode()).decode()[8:-4] for each in plain for user in ("shop", "me", "abc")]
    return [form.encode() for each in plain for form in (each, quote(each, safe=""), quote(each))] + [form.encode() for form in logins]


def places(texts: dict[str, bytes]) -> list[str]:
    """Return where which secret is."""
    found = [
        (name, place, form) for name, secret in SECRETS.items() for form in forms(secret) for place, text in texts.items() if form in text
    ]
    return [f"{name} in {place}: ...{(t := texts[place])[max(0, t.find(form) - 300) : t.find(form) + 60]!r}" for name, place, form in found]


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the content of all files below a folder; the servers' own data are elsewhere."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def only_with_a_password(url: str) -> None:
    """Let the user `shop` log in with the password, and everybody else without."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE shop LOGIN SUPERUSER PASSWORD '{SECRETS['SHOP_PASSWORD']}'")
        connection.execute("CREATE TABLE counted (n bigint, seen bigint)")
        (path,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        Path(path).write_text("local all shop scram-sha-256\nlocal all all trust\n")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture
def variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Start the servers and a Ray cluster, and yield the environment of its programs."""
    own = folder / "quoting"
    own.mkdir()
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    with ExitStack() as servers:
        kafka = servers.enter_context(broker.kafka_broker(None))
        admin = AdminClient({"bootstrap.servers": kafka})
        for made in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("counted", 2, 1)]).values():
            made.result(PATIENCE)
        postgres = servers.enter_context(postgres_server())
        only_with_a_password(postgres.url)
        endpoint = servers.enter_context(s3_server())
        keys = {"AWS_ACCESS_KEY_ID": "me", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": endpoint}
        gcs = free_port()
        settings = {"TMPDIR": str(own), **RAY_SETTINGS, **keys, **SECRETS}
        named = {"KAFKA": kafka, "PG_FOLDER": postgres.url.partition("host=")[2]}
        known = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | settings | named
        head = ["--head", f"--port={gcs}", "--num-cpus=8", "--include-dashboard=false"]
        servers.enter_context(ray_node(own / "head.log", head, known))
        until(lambda: listens(gcs), "the head is up", PATIENCE)
        yield known | {"RAY_ADDRESS": f"127.0.0.1:{gcs}"}
    until(lambda: not processes_of(own), f"no process is left: {processes_of(own)}")


def objects_of(endpoint: str) -> dict[str, bytes]:
    login: dict[str, Any] = {"aws_access_key_id": "me", "aws_secret_access_key": "x", "region_name": "us-east-1"}
    bucket = boto3.resource("s3", endpoint_url=endpoint, **login).Bucket(BUCKET)
    return {each.key: each.get()["Body"].read() for each in bucket.objects.all()}


@pytest.mark.timeout(900)
def test_no_secret_is_in_anything_that_a_job_shows_saves_or_logs(folder, variables, monkeypatch):
    own, out = folder / "quoting", folder / "quoting" / "out"
    out.mkdir()
    with (own / "printed").open("wb") as printed:
        command = [sys.executable, "-W", "ignore", str(SUPPORT / "quoting_program.py"), str(out), str(PATIENCE)]
        with subprocess.Popen(command, env=variables, stdout=printed, stderr=printed) as program:
            try:
                until(lambda: (out / "locked").exists() or program.poll() is not None, "all jobs but the last have failed", PATIENCE)
                assert (out / "locked").exists(), (own / "printed").read_text()
                objects = objects_of(variables["AWS_ENDPOINT_URL"])
                monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0)  # no key is known
                (out / "go").touch()
                code = program.wait(PATIENCE)
            finally:
                program.kill()
    text = (own / "printed").read_text()
    assert code == 1, text
    assert text.count("FAILED ") == 6, text

    recording = Recording(out / "recording")
    page = json.dumps(Replay(recording).message(recording.ended))
    views = repr(list(recording.views(0, len(recording.times) - 1)))  # the file is compressed
    texts = files_in(own) | objects | {"page": page.encode(), "recorded": views.encode()}
    found = places(texts)
    assert not found, "\n".join(found)

    logs = {place: content for place, content in texts.items() if "/logs/" in place}
    assert any(b"log: connecting as shop with ***" in content for content in logs.values()), "a worker's log was searched"
    assert any(b"debug: ***, ***" in content for content in logs.values())
    assert any(b"Basic" in content and b"***" in content for place, content in texts.items() if place.startswith("out/dead/"))
    for where in ("out/status", "out/view", "out/plan", "out/explained", "out/metrics", "recorded", "page", "printed", "saved/manifest"):
        assert b"last" in texts[where], where
