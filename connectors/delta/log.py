"""The log of a Delta Lake table, version by version: which files each adds, and what it does to rows that were there.

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
"""The features of tables whose files hold just the table's rows."""


@dataclass(frozen=True, slots=True)
class Version:
    """`added`: files with new rows, relative to the table. `rewrites`: whether it deletes or changes rows that were there.

    `operation`: what it says that it is. `columns`: the table's from here on, and `configuration`: its properties, None if they stay.
    `features`: what a reader must know from here on.
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
    """Of the table in the folder `path`."""

    def __init__(self, path: str, operator: str) -> None:
        self.path, self._operator = path, operator

    def version(self, number: int) -> Version | None:
        """The version of this number; None if the table has not come to it. Raises ConnectorError if it is gone, or can't be read."""
        file = Path(self.path, LOG, _name(number))
        try:
            lines = file.read_bytes()
        except FileNotFoundError:
            later = self._later_than(number)
            if later is None or file.exists():  # it may have come meanwhile, and another one behind it
                return None
            raise ConnectorError(
                f"operator `{self._operator}`: version {number} of {self.path} is gone from the table's log, which goes on to version "
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
            raise ConnectorError(f"operator `{self._operator}`: {self.path} is no Delta table any more: its log is gone") from None
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
        str(found.get("commitInfo", [{}])[-1].get("operation", "it says not what it does")),
        _columns(metadata["schemaString"]) if metadata else None,
        tuple(metadata.get("partitionColumns", ())),
        metadata.get("configuration") or {},
        tuple(sorted(features)),
    )


def _columns(text: str) -> pa.Schema:
    from deltalake import Schema

    return pa.schema(Schema.from_json(text).to_arrow())
