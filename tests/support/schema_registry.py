"""A schema registry for tests: a real HTTP server on loopback that answers as Confluent's does, with the calls that evenflow makes."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class Registry:
    """Schemas by number and by subject. `login`: the required user and password; `refused`: subjects that accept no schema."""

    def __init__(self, login: str | None = None) -> None:
        self.login, self.refused, self.url = login, set[str](), ""
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def add(self, subject: str, schema: Any, **more: Any) -> int:
        """Register a schema, and return its number. `more`: its `schemaType` and `references`."""
        entry = {"schema": schema if isinstance(schema, str) else json.dumps(schema), **more}
        with self._lock:
            if entry not in self.schemas:
                self.schemas.append(entry)
            number = self.schemas.index(entry) + 1
            versions = self.subjects.setdefault(subject, [])
            if number not in versions:
                versions.append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and body of the response to a request."""
        self.asked.append(f"{method} {path}")
        match [method, *path.strip("/").split("/")]:
            case ["GET", "schemas", "ids", number]:
                if not 0 < int(number) <= len(self.schemas):
                    return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
                return 200, self.schemas[int(number) - 1]
            case ["GET", "subjects", subject, "versions", version]:
                versions = self.subjects.get(unquote(subject), [])
                place = len(versions) if version == "latest" else int(version)
                if not 0 < place <= len(versions):
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                number = versions[place - 1]
                return 200, {"subject": unquote(subject), "version": place, "id": number, **self.schemas[number - 1]}
            case ["POST", "subjects", subject, "versions"]:
                if unquote(subject) in self.refused:
                    return 409, {"error_code": 409, "message": "Schema being registered is incompatible with an earlier schema"}
                return 200, {"id": self.add(unquote(subject), body["schema"])}
        return 404, "<html>not here</html>"


@contextmanager
def schema_registry(login: str | None = None) -> Iterator[Registry]:
    """Yield a registry that listens on loopback."""
    registry = Registry(login)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            wanted = None if login is None else f"Basic {base64.b64encode(login.encode()).decode()}"
            if wanted is not None and self.headers["Authorization"] != wanted:
                status, found = 401, {"error_code": 40101, "message": "Unauthorized"}
            else:
                status, found = registry.answer(self.command, self.path, body)
            data = (found if isinstance(found, str) else json.dumps(found)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- as above
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
