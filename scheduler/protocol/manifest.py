"""A manifest: the contents of a complete checkpoint, stored next to its state files.

A magic line, the XXH3 checksum of the rest (16 bytes), and a msgpack map. One wrong bit makes it unreadable. Since format 3 it
describes the parts of each operator's state; older formats are rejected, because their state could be restored wrongly.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack
import numpy as np
import xxhash

from ...engine.protocol.ids import Attempt, CheckpointNumber
from ...engine.protocol.routing import RoutingTable
from ...engine.protocol.split_route import SplitRoute
from ...engine.state_description import StateDescription
from ...state.errors import CorruptStateError
from ...state.files import StateFile

MAGIC = b"evenflow manifest 3\n"
_OLDER = (b"evenflow manifest 1\n", b"evenflow manifest 2\n")
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One worker's part: the position of its source, its event time (microseconds), and the files of its keyed state.

    `files` are a chain, oldest first: the whole state as of some checkpoint, then the changes from checkpoint to checkpoint.
    `finished`: it had sent its last element before the barrier, so it has no state any more.
    """

    position: Any = None
    watermark: int = 0
    files: tuple[StateFile, ...] = ()
    finished: bool = False
    own_times: Mapping[str, int] = field(default_factory=dict)
    """Event times of its operators that keep one of their own, by operator name, in microseconds."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a checkpoint.

    `tasks` by stage, in the order of their indexes; `operators`: the names of a stage's chain; `tables` by stage with keyed
    state. `created`: seconds since the epoch. `committables`: output for the sinks to commit once the checkpoint is complete.
    `undelivered`: payloads of earlier commits that the driver may not have yet. `run`: the run of the job that took it.
    """

    job: str
    checkpoint: CheckpointNumber
    attempt: Attempt
    created: float
    key_groups: int
    operators: Mapping[str, tuple[str, ...]]
    tasks: Mapping[str, tuple[TaskEntry, ...]]
    tables: Mapping[str, RoutingTable]
    committables: Mapping[str, list[Any]]
    undelivered: tuple[tuple[str, Any], ...] = ()
    run: str = ""
    state: Mapping[str, StateDescription] = field(default_factory=dict)
    """Descriptions of the state of each stage with keyed state."""

    @property
    def files(self) -> list[StateFile]:
        """All state files."""
        return [file for entries in self.tasks.values() for entry in entries for file in entry.files]

    @property
    def finished(self) -> bool:
        """True if every worker had sent its last element: nothing but the commit of this checkpoint is left to do."""
        return all(entry.finished for entries in self.tasks.values() for entry in entries)

    @property
    def own_files(self) -> list[StateFile]:
        """The state files that were written for this checkpoint; the others belong to earlier ones."""
        return [file for file in self.files if "/" not in file.path]

    def as_savepoint(self) -> Manifest:
        """Return the manifest of a folder with copies of all files, without pending output: the job that took it commits that."""
        tasks = {
            stage: tuple(replace(e, files=tuple(replace(f, path=posixpath.basename(f.path)) for f in e.files)) for e in entries)
            for stage, entries in self.tasks.items()
        }
        return replace(self, tasks=tasks, committables={}, undelivered=())

    def to_bytes(self) -> bytes:
        """Encode the manifest."""
        body: bytes = msgpack.packb(
            {
                "job": self.job,
                "checkpoint": self.checkpoint,
                "attempt": self.attempt,
                "created": self.created,
                "key_groups": self.key_groups,
                "operators": {stage: list(names) for stage, names in self.operators.items()},
                "tasks": {stage: [_packed_entry(entry) for entry in entries] for stage, entries in self.tasks.items()},
                "tables": {stage: _packed_table(table) for stage, table in self.tables.items()},
                "committables": dict(self.committables),
                "undelivered": list(self.undelivered),
                "run": self.run,
                "state": {stage: description.packed() for stage, description in self.state.items()},
            }
        )
        return MAGIC + xxhash.xxh3_128(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Decode a manifest that `to_bytes` encoded. Raises CorruptStateError for any other bytes."""
        if data.startswith(_OLDER):
            raise CorruptStateError(
                "the manifest was written by an older version of evenflow, which did not record the parts of the state: finish the job "
                "with that version, or start it from the beginning"
            )
        if not data.startswith(MAGIC):
            raise CorruptStateError("the manifest has another format, or it is truncated")
        digest, body = data[len(MAGIC) : len(MAGIC) + _DIGEST], data[len(MAGIC) + _DIGEST :]
        if xxhash.xxh3_128(body).digest() != digest:
            raise CorruptStateError("the manifest is corrupt: its checksum is wrong")
        try:
            fields = msgpack.unpackb(body, strict_map_key=False)
            return cls(
                fields["job"],
                fields["checkpoint"],
                fields["attempt"],
                fields["created"],
                fields["key_groups"],
                {stage: tuple(names) for stage, names in fields["operators"].items()},
                {stage: tuple(map(_entry, entries)) for stage, entries in fields["tasks"].items()},
                {stage: _table(table) for stage, table in fields["tables"].items()},
                fields["committables"],
                tuple((name, payload) for name, payload in fields["undelivered"]),
                fields["run"],
                {stage: StateDescription.unpacked(packed) for stage, packed in fields["state"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CorruptStateError(f"the manifest lacks something: {error!r}") from error


def _packed_entry(entry: TaskEntry) -> dict[str, Any]:
    files = [[file.path, file.size, file.checksum, file.keys] for file in entry.files]
    times = dict(entry.own_times)
    return {"position": entry.position, "watermark": entry.watermark, "files": files, "finished": entry.finished, "own_times": times}


def _entry(fields: dict[str, Any]) -> TaskEntry:
    files = tuple(StateFile(*file) for file in fields["files"])
    times = {str(name): int(time) for name, time in fields["own_times"].items()}
    return TaskEntry(fields["position"], fields["watermark"], files, fields["finished"], times)


def _packed_table(table: RoutingTable) -> dict[str, Any]:
    splits = [[key, split.home, list(split.others), split.dealt] for key, split in table.splits.items()]
    return {"groups": table.groups.astype("<u2").tobytes(), "keys": list(table.keys.items()), "splits": splits}


def _table(fields: dict[str, Any]) -> RoutingTable:
    """Decode a routing table. Manifests written before keys could be split have no `splits`."""
    splits = {key: SplitRoute(home, tuple(others), dealt) for key, home, others, dealt in fields.get("splits", ())}
    return RoutingTable(np.frombuffer(fields["groups"], "<u2").astype(np.uint16), dict(fields["keys"]), splits)
