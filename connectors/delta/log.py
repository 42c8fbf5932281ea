"""The log of a Delta Lake table: for each version, the files that it adds and the changes that it makes to existing rows.

>>> import tempfile, deltalake, pyarrow as pa
>>> folder = tempfile.mkdtemp()
>>> for n in (1, 2):
...     deltalake.write_deltalake(folder, pa.table({"n": [n]}), mode="append")
>>> log = DeltaLog(folder, "read_delta")
>>> len(log.version(1).added), log.version(1).rewrites, log.version(2)
(1, False, None)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ...engine.errors import ConnectorError

LOG = "_delta_log"

CAN_READ = frozenset({"timestampNtz", "appendOnly", "invariants", "v2Checkpoint", "vacuumProtocolCheck"})
"""The features of tables whose files contain exactly the table's rows."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table.

    `added`: files with new rows, relative to the table. `rewrites`: True if it deletes or changes existing rows. `operation`: its
    name in the log. `columns` and `configuration`: the table's columns and properties from this version on, None if unchanged.
    `features`: features that a reader must support from this version on.
    """

    number: int
    added: tuple[str, ...]
    rewrites: bool
    operation: str
    columns: pa.Schema | None
    partitions: tuple[str, ...]
    configuration: Mapping[str, str]
    features: tuple[str, ...]


class DeltaLog:
    """The log of the table in the folder `path`."""

    def __init__(self, path: str, operator: str) -> None:
        self.path, self._operator = path, operator

    def version(self, number: int) -> Version | None:
        """Read the version with this number; return None if the table hasn't reached it.

        Raises ConnectorError if its log entry was removed or can't be read.
        """
        file = Path(self.path, LOG, _name(number))
        try:
            lines = file.read_bytes()
        except FileNotFoundError:
            later = self._later_than(number)
            if later is None or file.exists():  # it may have appeared meanwhile, followed by another
                return None
            raise ConnectorError(
                f"operator `{self._operator}`: version {number} of {self.path} is missing from the table's log, which continues to version "
                f"{later}; it was removed before it was read (delta.logRetentionDuration): begin without the checkpoint, and keep the log "
                "for longer"
            ) from None
        try:
            return _version(number, [json.loads(line) for line in lines.splitlines() if line.strip()])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConnectorError(f"operator `{self._operator}`: {file} can't be read as a version of a Delta table: {error}") from error

    def _later_than(self, number: int) -> int | None:
        try:
            names = os.listdir(Path(self.path, LOG))  # noqa: PTH208 -- names are all that is needed of a long log
        except FileNotFoundError:
            raise ConnectorError(f"operator `{self._operator}`: {self.path} is no longer a Delta table: its log was removed") from None
        numbers = [int(name[:20]) for name in names if name[:20].isdigit()]
        newest = max(numbers, default=-1)
        return newest if newest > number else None


def _name(number: int) -> str:
    return f"{number:020}.json"


def _version(number: int, actions: list[dict[str, Any]]) -> Version:
    found: dict[str, list[dict[str, Any]]] = {}
    for action in actions:
        for kind, content in action.items():
            found.setdefault(kind, []).append(content)
    changing = {kind: [file for file in found.get(kind, ()) if file.get("dataChange", True)] for kind in ("add", "remove")}
    [metadata] = found.get("metaData", [{}])[-1:]
    protocol = found.get("protocol", [{}])[-1]
    vectors = any(file.get("deletionVector") for file in found.get("add", ()))
    features = {*protocol.get("readerFeatures", ()), *(["deletionVectors"] if vectors else [])}
    return Version(
        number,
        tuple(sorted(unquote(file["path"]) for file in changing["add"])),
        bool(changing["remove"]),
        str(found.get("commitInfo", [{}])[-1].get("operation", "it has no operation")),
        _columns(metadata["schemaString"]) if metadata else None,
        tuple(metadata.get("partitionColumns", ())),
        metadata.get("configuration") or {},
        tuple(sorted(features)),
    )


def _columns(text: str) -> pa.Schema:
    from deltalake import Schema

    return pa.schema(Schema.from_json(text).to_arrow())
