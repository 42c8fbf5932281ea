"""A catalog of Iceberg tables with the REST protocol, over a catalog in SQLite, and with replies that get lost.

It takes pyiceberg's own requests apart with pyiceberg's own models, so it shows what a client does with a server's answers, and not that
any server answers so.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from iceberg_tables import catalog_options
from pyiceberg.catalog.rest import CreateTableRequest, TableResponse
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

ERRORS = {NoSuchTableError: 404, TableAlreadyExistsError: 409, NamespaceAlreadyExistsError: 409, CommitFailedException: 409}


class RestCatalogServer:
    """The server at `uri`. `faults`: what happens to the next commits, one after the other: "lost" does the commit and answers 504,
    "busy" doesn't and answers 503, and "cut" does the commit and answers with half a body.
    """

    def __init__(self, folder: Path, store: Mapping[str, str]) -> None:
        self._catalog = SqlCatalog("test", **{**catalog_options(folder), **store})
        self.uri, self.faults, self.commits = "", list[str](), 0

    @property
    def options(self) -> dict[str, str]:
        return {"type": "rest", "uri": self.uri}

    def close(self) -> None:
        self._catalog.close()

    def __call__(self, environment: Any, start: Any) -> Any:
        request = Request(environment)
        try:
            answer = self._answer(request.method, request.path.strip("/").split("/")[1:], request.get_data())
        except tuple(ERRORS) as error:
            code = ERRORS[type(error)]
            told = {"error": {"message": str(error), "type": type(error).__name__, "code": code}}
            answer = Response(json.dumps(told), code, content_type="application/json")
        return answer(environment, start)

    def _answer(self, method: str, path: list[str], body: bytes) -> Response:
        match method, path:
            case "GET", ["config"]:
                return _json({"defaults": {}, "overrides": {}})
            case "POST", ["namespaces"]:
                asked = json.loads(body)
                self._catalog.create_namespace(tuple(asked["namespace"]), asked["properties"])
                return _json(asked)
            case "POST", ["namespaces", namespace, "tables"]:
                create = CreateTableRequest.model_validate({"location": None, **json.loads(body)})
                spec = create.partition_spec or UNPARTITIONED_PARTITION_SPEC
                name = (namespace, create.name)
                return _table(self._catalog.create_table(name, create.table_schema, partition_spec=spec, properties=create.properties))
            case "GET", ["namespaces", namespace, "tables", name]:
                return _table(self._catalog.load_table((namespace, name)))
            case "POST", ["namespaces", namespace, "tables", name]:
                return self._commit((namespace, name), CommitTableRequest.model_validate_json(body))
        return Response("no such endpoint", 404)

    def _commit(self, name: tuple[str, str], request: CommitTableRequest) -> Response:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "busy":
            return Response(json.dumps({"error": {"message": "later", "type": "Busy", "code": 503}}), 503)
        self.commits += 1
        done = self._catalog.commit_table(self._catalog.load_table(name), request.requirements, request.updates)
        if fault == "lost":
            return Response(json.dumps({"error": {"message": "gave up", "type": "Gateway", "code": 504}}), 504)
        text = done.model_dump_json(by_alias=True)
        return Response(text[: len(text) // 2] if fault == "cut" else text, content_type="application/json")


def _json(value: Any) -> Response:
    return Response(json.dumps(value), content_type="application/json")


def _table(table: Table) -> Response:
    answer = TableResponse(metadata=table.metadata, **{"metadata-location": table.metadata_location})
    return Response(answer.model_dump_json(by_alias=True), content_type="application/json")


class _Silent(WSGIRequestHandler):
    def log_request(self, *arguments: Any) -> None:
        """Don't log."""


@contextmanager
def rest_catalog(folder: Path, store: Mapping[str, str] | None = None) -> Iterator[RestCatalogServer]:
    """Run a server. `store`: the warehouse and how its store is reached, unless the tables are in the folder."""
    catalog = RestCatalogServer(folder, {} if store is None else store)
    server = make_server("127.0.0.1", 0, catalog, threaded=True, request_handler=_Silent)
    catalog.uri = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield catalog
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        catalog.close()
