"""The examples of docs/how-to/connectors.md, against a server, a socket and a database."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from patience import patience

import evenflow as ef

PAGE = Path(__file__).parents[2] / "docs/how-to/connectors.md"
HTTP, SOCKET, COMMIT, CHECKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
ROWS = 30


class Rows(BaseHTTPRequestHandler):
    """Gives a few rows at a time, every second time none."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        partition, number = int(url.path.rpartition("/")[2]), int(parse_qs(url.query)["from"][0])
        self.asked.append(self.path)
        rows: list[Any] = [{"partition": partition, "ts": n, "n": n} for n in range(number, min(ROWS, number + 4))]
        body = json.dumps(["end"] if number == ROWS else rows if len(self.asked) % 2 else []).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the standard library's name
        """Say nothing."""


class Words(BaseRequestHandler):
    def handle(self) -> None:
        for part in (b"to be\nor", b" not\n", b"to be"):
            self.request.sendall(part)


def serving(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def url() -> Iterator[str]:
    for host, port in serving(ThreadingHTTPServer(("127.0.0.1", 0), Rows)):
        yield f"http://{host}:{port}"


@pytest.fixture
def words() -> Iterator[tuple[str, int]]:
    yield from serving(ThreadingTCPServer(("127.0.0.1", 0), Words))


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = str(tmp_path / "rows.db")
    run(path, "CREATE TABLE staged (batch TEXT, n INTEGER)", "CREATE TABLE published (batch TEXT PRIMARY KEY)")
    return path


def run(path: str, *statements: str) -> list[Any]:
    connection = sqlite3.connect(path, timeout=patience(60))
    with connection:
        results = [connection.execute(statement).fetchall() for statement in statements]
    connection.close()
    return results[-1]


def published(path: str) -> list[dict[str, Any]]:
    return [{"n": n} for (n,) in run(path, "SELECT n FROM staged JOIN published USING (batch)")]


def examples(*blocks: str, **names: Any) -> dict[str, Any]:
    space: dict[str, Any] = {"ef": ef, **names}
    exec("\n".join(blocks), space)
    return space


def test_rows_of_an_http_api_go_into_a_database(url, database, tmp_path):
    space = examples(HTTP, COMMIT, URL=url, DATABASE=database)
    flow = ef.Dataflow("api")
    flow.read(space["source"]).parallelism(2).map(lambda row: {"n": 100 * row["partition"] + row["n"]}).write(space["sink"])
    flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "saved"), interval="20ms"))).wait("120s")
    assert sorted(row["n"] for row in published(database)) == sorted(100 * partition + n for partition in range(3) for n in range(ROWS))


@pytest.mark.slow
def test_both_pass_the_checks(url, database):
    examples(
        HTTP.replace('"10ms"', '"1us"'),
        COMMIT,
        CHECKS,
        URL=url,
        DATABASE=database,
        empty_tables=lambda: run(database, "DELETE FROM staged", "DELETE FROM published"),
        published_rows=lambda: published(database),
    )


def test_lines_come_from_a_socket(words):
    rows: list[dict[str, Any]] = []
    flow = ef.Dataflow("socket")
    flow.read(examples(SOCKET)["Lines"](words)).write(ef.to_list(rows))
    flow.run(runtime="local").wait("120s")
    assert [row["item"] for row in rows] == ["to be", "or not", "to be"]
