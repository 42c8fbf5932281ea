"""Servers of object stores on the loopback interface, behind a proxy that injects faults. A test of all stores is marked `every_store`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace

import fsspec
import pytest
from store_proxy import Fault, Proxy
from store_servers import BUCKET, SERVERS, options_of


@pytest.fixture(scope="session")
def proxies() -> Iterator[Callable[[str], Proxy]]:
    """Return a function that starts the server of a protocol once, and returns its proxy."""
    with ExitStack() as stack:
        running: dict[str, Proxy] = {}

        def proxy(protocol: str) -> Proxy:
            if protocol not in running:
                running[protocol] = stack.enter_context(SERVERS[protocol]())
            return running[protocol]

        yield proxy


@pytest.fixture
def store(proxies, waiting_for_jobs, monkeypatch, request) -> Iterator[Proxy]:
    """Send `s3://bucket/...` (or `abfs`, or `gs`) through a proxy, with clients that give up soon. Only a job's handle may sleep."""
    protocol = getattr(request, "param", "s3")
    proxy = proxies(protocol)
    proxy.fault = Fault("none", times=0)
    monkeypatch.setitem(fsspec.config.conf, protocol, options_of(proxy))
    PATIENCE[protocol](monkeypatch)
    yield proxy
    proxy.fault.held.set()
    proxy.fault = Fault("none", times=0)
    fsspec.get_filesystem_class(protocol).clear_instance_cache()


@pytest.fixture
def url(store, request) -> str:
    return f"{store.protocol}://{BUCKET}/{abs(hash(request.node.nodeid))}"


def _s3_gives_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "retries", 2)


def _azure_gives_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.storage.blob.aio import ExponentialRetry

    monkeypatch.setattr(ExponentialRetry, "get_backoff_time", lambda policy, settings: 0.01)


def _google_gives_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    import gcsfs.core

    sleep = asyncio.sleep
    monkeypatch.setattr(sys.modules["gcsfs.retry"], "asyncio", SimpleNamespace(sleep=lambda seconds: sleep(0.01)))
    # Its extension for hierarchical buckets speaks gRPC, which the server doesn't.
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, "gs", gcsfs.core.GCSFileSystem)


PATIENCE = {"s3": _s3_gives_up_soon, "abfs": _azure_gives_up_soon, "gs": _google_gives_up_soon}
