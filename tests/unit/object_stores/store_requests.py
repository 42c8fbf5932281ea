"""Requests of the clients of three kinds of object stores, in common words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

CONDITIONS = {"if-none-match"}


class Request(NamedTuple):
    """A request: `kind` is create, piece, copy, remove, look, read, list, or the HTTP method; `name` has the object's name in it."""

    kind: str
    name: str

    @property
    def writes(self) -> bool:
        return self.kind in ("create", "piece", "copy", "remove")


def s3(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Request:
    path, query = _split(url)
    if method == "PUT":
        kind = "copy" if "x-amz-copy-source" in headers else "piece" if "partNumber" in query else "create"
    elif method == "POST":
        kind = "remove" if "delete" in query else "create"
    elif method == "GET":
        kind = "list" if "list-type" in query else "read"
    else:
        kind = {"HEAD": "look", "DELETE": "remove"}[method]
    return Request(kind, path)


def azure(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Request:
    path, query = _split(url)
    part = query.get("comp", [""])[0]
    if method == "PUT":
        kind = "copy" if "x-ms-copy-source" in headers else "piece" if part == "block" else "create"
    elif method == "GET":
        kind = "list" if part == "list" else "read"
    else:
        kind = {"HEAD": "look", "DELETE": "remove"}[method]
    return Request(kind, path + query.get("prefix", [""])[0])


def google(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Request:
    path, query = _split(url)
    if method == "POST" and "/rewriteTo/" in path:
        return Request("copy", path.partition("/rewriteTo/")[2])
    if method in ("POST", "PUT"):
        named = re.search(rb'\{.*?"name".*?\}', body, re.DOTALL) if "upload_id" not in query else None
        name = json.loads(named[0])["name"] if named else query.get("name", [""])[0]
        return Request("piece" if "upload_id" in query or not path.startswith("/upload") else "create", name or path)
    if method == "GET":
        kind = "read" if "alt" in query or path.startswith("/download") else "list" if path.endswith("/o") else "look"
        return Request(kind, path + query.get("prefix", [""])[0])
    return Request("remove", path)


def without_condition(url: str) -> str:
    """Return a URL of Google's interface without the condition that an object is only created."""
    return re.sub(r"[?&]ifGenerationMatch=0", "", url)


def _split(url: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlsplit(url)
    return unquote(parts.path), parse_qs(parts.query, keep_blank_values=True)
