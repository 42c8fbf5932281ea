"""A client of a schema registry with Confluent's REST API, which finds schemas by number and by subject.

The first five bytes of a value name the schema that wrote it: a zero, and the schema's number.
"""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from ...engine.errors import ConnectorError, FlowError
from ...engine.secrets import revealed
from .schema import AvroSchema, SchemaError

ANSWER_SECONDS = 10.0
"""The deadline of a request."""

HEADER_BYTES = 5

_MAGIC = b"\0"

_FORMAT = "application/vnd.schemaregistry.v1+json"


class UnknownSchemaError(Exception):
    """The registry has no schema with this number, or one that can't be used; the text says which."""


def header_of(number: int) -> bytes:
    """Return the bytes that precede a value written by the schema with this number."""
    return _MAGIC + number.to_bytes(HEADER_BYTES - 1, "big")


def number_of(value: bytes) -> int | None:
    """Return the number of the schema that wrote a value, or None if the value has no such header."""
    if value[:1] != _MAGIC or len(value) < HEADER_BYTES:
        return None
    return int.from_bytes(value[1:HEADER_BYTES], "big")


class SchemaRegistry:
    """A client of the registry at `url`, which may contain a user and a password: `https://user:password@host`. Picklable.

    Raises FlowError for a malformed address. The methods raise ConnectorError if the registry doesn't answer or rejects the user.
    """

    def __init__(self, url: str, operator: str) -> None:
        parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FlowError(f"operator `{operator}`: registry must be the address of a schema registry: http://host:8081")
        self.url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        self._operator = operator
        self._headers = {"Accept": _FORMAT, "Content-Type": _FORMAT}
        self._login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))

    def schema(self, number: int) -> AvroSchema:
        """Fetch the schema with this number. Raises UnknownSchemaError if there is none that can be used."""
        found = self._request(f"/schemas/ids/{number}")
        if found is None:
            raise UnknownSchemaError(f"the registry {self.url} has no schema {number}; is it the one that the producer asks?")
        try:
            return self._schema(found)
        except SchemaError as error:
            raise UnknownSchemaError(f"schema {number} of the registry {self.url} can't be used: {error}") from error

    def newest(self, subject: str) -> tuple[int, AvroSchema]:
        """Fetch number and schema of a subject's newest version. Raises ConnectorError if there is none that can be used."""
        found = self._request(f"/subjects/{quote(subject, safe='')}/versions/latest")
        if found is None:
            raise self._error(f"has no subject `{subject}`; register a schema under it, or give one in schema=")
        try:
            return int(found["id"]), self._schema(found).checked()
        except SchemaError as error:
            raise self._error(f"has a schema under `{subject}` that can't be used: {error}; give another in schema=") from error

    def register(self, subject: str, schema: AvroSchema) -> int:
        """Register a schema under the subject, unless it is registered already, and return its number."""
        found = self._request(f"/subjects/{quote(subject, safe='')}/versions", {"schema": schema.text})
        if found is None:
            raise self._error(f"can't register a schema under `{subject}`; check the address")
        return int(found["id"])

    def _schema(self, found: dict[str, Any]) -> AvroSchema:
        kind = found.get("schemaType", "AVRO")
        if kind != "AVRO":
            raise SchemaError(f"it is of the type {kind}")
        others: dict[str, str] = {}
        self._gather(found, others)
        return AvroSchema(found["schema"], list(others.values()))

    def _gather(self, found: dict[str, Any], others: dict[str, str]) -> None:
        """Add the schemas that this one refers to, each after the schemas that it refers to itself."""
        for reference in found.get("references") or ():
            subject, version = reference["subject"], reference["version"]
            if f"{subject} {version}" not in others:
                other = self._request(f"/subjects/{quote(subject, safe='')}/versions/{version}")
                if other is None:
                    raise SchemaError(f"it refers to version {version} of `{subject}`, which no longer exists")
                self._gather(other, others)
                others[f"{subject} {version}"] = other["schema"]

    def _request(self, path: str, body: dict[str, str] | None = None) -> dict[str, Any] | None:
        """Send a request and return the registry's answer, or None if the registry has no such schema or subject."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if self._login is None else self._headers | {"Authorization": _basic(*map(revealed, self._login))}
        request = Request(self.url + path, data, headers)  # noqa: S310 -- the constructor takes http and https only
        try:
            with urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 -- as above
                found = json.load(answer)
        except HTTPError as error:
            with error:
                self._check(error)
            return None
        except ValueError as error:
            raise self._error("answers with something other than JSON; check that it is the address of a schema registry") from error
        except (OSError, http.client.HTTPException) as error:
            raise self._error(f"doesn't answer: {error}; check the address, and that a registry listens there") from error
        if not isinstance(found, dict):
            raise self._error("answers with something other than a JSON object; check that it is the address of a schema registry")
        return found

    def _check(self, error: HTTPError) -> None:
        """Raise ConnectorError, unless the error means that there is no such schema or subject."""
        said = error.read(2_000).decode(errors="replace")
        if error.code in (401, 403):
            raise self._error("refuses the user or the password; give them in the address: https://user:password@host") from error
        if error.code == 404 and "error_code" in said:
            return
        if error.code in (409, 422):
            raise self._error(f"refuses the schema: {said}; change schema=, or the subject's rules of compatibility") from error
        raise self._error(f"answers with {error.code}: {said}; check the address, and the registry's log") from error

    def _error(self, problem: str) -> ConnectorError:
        return ConnectorError(f"operator `{self._operator}`: the schema registry {self.url} {problem}")


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
