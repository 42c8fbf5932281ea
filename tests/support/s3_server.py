"""An empty S3 on the loopback interface, by moto.

The servers of one process share their buckets, so each begins by removing those of the ones before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

from guard import SLEEP

BUCKET = "bucket"


@contextmanager
def s3_server() -> Iterator[str]:
    """Run a server with one empty bucket, `BUCKET`. Yields its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server._server_ready_event.clear()
    time.sleep, refused = SLEEP, time.sleep  # the server's start waits for its thread
    server.start()
    time.sleep = refused
    address = "http://{}:{}".format(*server.get_host_and_port())
    try:
        urlopen(Request(f"{address}/moto-api/reset", method="POST")).close()
        urlopen(Request(f"{address}/{BUCKET}", method="PUT")).close()
        yield address
    finally:
        server.stop()
