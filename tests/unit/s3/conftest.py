"""A real S3 server, moto's, on the loopback interface, behind a proxy that injects faults."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.request import Request, urlopen

import fsspec
import pytest
from guard import SLEEP
from moto.server import ThreadedMotoServer
from s3_proxy import Fault, Proxy

BUCKET = "bucket"


@pytest.fixture(scope="session")
def proxy() -> Iterator[Proxy]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server._server_ready_event.clear()
    time.sleep, refused = SLEEP, time.sleep  # the server's start waits for its thread
    server.start()
    time.sleep = refused
    proxy = Proxy(server.get_host_and_port()[1])
    urlopen(Request(f"{proxy.url}/{BUCKET}", method="PUT")).close()
    yield proxy
    proxy.shutdown()
    proxy.server_close()
    server.stop()


@pytest.fixture
def s3(proxy, waiting_for_jobs, monkeypatch, request) -> Iterator[Proxy]:
    """Send `s3://bucket/...` through the proxy, with clients that give up soon. Only a job's handle may sleep."""
    proxy.fault = Fault("none", times=0)
    retries = {"retries": {"max_attempts": 1, "mode": "standard"}, "connect_timeout": 5, "read_timeout": 5}
    options = {
        "key": "me",
        "secret": "secret",
        "endpoint_url": proxy.url,
        "config_kwargs": retries,
        "client_kwargs": {"region_name": "us-east-1"},
    }
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    files = fsspec.filesystem("s3")
    monkeypatch.setattr(type(files), "retries", 2)
    if not files.exists(BUCKET):
        files.mkdir(BUCKET)
    yield proxy
    proxy.fault.held.set()
    proxy.fault = Fault("none", times=0)
    type(files).clear_instance_cache()


@pytest.fixture
def url(s3, request) -> str:
    return f"s3://{BUCKET}/{abs(hash(request.node.nodeid))}"
