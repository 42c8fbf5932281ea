"""Reads the state of a savepoint as Arrow tables, one for each operator, without the flow that wrote it.

>>> import tempfile
>>> import evenflow as ef
>>> folder = tempfile.mkdtemp()
>>> flow = ef.Dataflow("shop")
>>> sales = flow.read(ef.generate(rate=1000, keys=3, string_keys=True)).key_by("key")
>>> _ = sales.stateful_map(lambda total, row: ((total or 0.0) + row["value"], None)).named("total").write(ef.to_list([]))
>>> job = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(f"{folder}/checkpoints")))
>>> savepoint = ef.read_savepoint(job.savepoint(f"{folder}/savepoint"))
>>> job.cancel()
>>> _ = job.wait()
>>> savepoint.job, savepoint.operators["total"].chain
('shop', ('total', 'to_list'))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from .actors.task.saved_state import SAVEPOINT
from .connectors.files.remote import folder_or_url
from .engine.aggregates.partial_aggregates import INPUT, PANE, PART, ROWS
from .engine.broadcast_rows import is_broadcast
from .engine.errors import ConnectorError, RequestError
from .engine.joins.sides import KEY, other, side_of
from .engine.keyed_state.kinds.migration import unmarked
from .engine.keyed_state.kinds.objects import STATE
from .engine.keys.encoding import key_hashes
from .engine.operators.processing.saved_objects import value_column
from .engine.protocol.routing import among
from .engine.snapshots.chain import resolved
from .scheduler.protocol.manifest import Manifest, TaskEntry
from .state.errors import CorruptStateError
from .state.packing import unpack_value
from .state.store import CheckpointStore


@dataclass(frozen=True, slots=True)
class SavedOperator:
    """An operator in a savepoint: `keys` and `size` (bytes) of its files; `chain`: the operators that ran in the same workers.

    In a checkpoint's folder a key counts once for the whole state, and again for each later checkpoint in which it changed. `state`: the
    parts of the state, by name: aggregates with their functions, or the states of a `KeyedFunction` with their kinds.
    """

    workers: int
    chain: tuple[str, ...]
    keys: int
    size: int
    state: Mapping[str, str] = field(default_factory=dict)


class SavedJob:
    """A savepoint, or the folder of a checkpoint: the names of `job` and `checkpoint`, its time `created`, its `operators` by name."""

    def __init__(self, url: str) -> None:
        self._url, self._store = url, CheckpointStore(url)
        try:
            self._manifest = Manifest.from_bytes(self._store.manifest(SAVEPOINT))
        except CorruptStateError as error:
            raise ConnectorError(f"{url} can't be read as a savepoint: {error}") from error
        manifest = self._manifest
        self.job, self.checkpoint = manifest.job, manifest.checkpoint
        self.created = datetime.fromtimestamp(manifest.created, UTC)
        self.operators = {name: self._operator(name) for name in manifest.tasks}

    def state(self, operator: str) -> pa.Table:
        """Return the keyed state of an operator, with the key columns in front.

        `stateful_map` and `process`: a column `state` with Arrow's type, or text if the keys' states are of several kinds.
        `stateful_map_columns`: its state columns. Aggregates: `rows`, the number of aggregated rows, then the parts of each aggregate,
        with its name: `total.0`, `total.1`... Windows also have `pane`, the start of the pane in event time; a key may have several rows
        in one pane, which add up.

        Raises RequestError if there is no state of that operator, ConnectorError if a file is damaged.
        """
        entries = self._manifest.tasks.get(operator, ())
        try:
            chunks = [chunk for worker, entry in enumerate(entries) for chunk in self._chunks(operator, worker, entry)]
        except CorruptStateError as error:
            raise ConnectorError(f"the savepoint {self._url} is damaged: {error}") from error
        if not any(chunk.num_rows for chunk in chunks):
            there = ", ".join(name for name, saved in self.operators.items() if saved.keys) or "none"
            raise RequestError(f"the savepoint {self._url} has no state of an operator `{operator}`; there is state of: {there}")
        return _table(chunks, tuple(self.operators[operator].state))

    def _chunks(self, operator: str, worker: int, entry: TaskEntry) -> Iterator[pa.RecordBatch]:
        """Yield the state of a worker, without its copies of rows of split keys: the key's home has them too."""
        table = self._manifest.tables.get(operator)
        for chunk in resolved(self._store.chunks(SAVEPOINT, file) for file in reversed(entry.files)):
            if is_broadcast(chunk.schema):  # of no key
                continue
            if table is None or not table.splits:
                yield chunk
                continue
            side = side_of(chunk.schema)
            keys = chunk.select([name for name in chunk.schema.names if name.startswith(KEY)])
            shared = [(key, split.dealt) for key, split in table.splits.items() if worker in split.others]
            yield chunk.filter(pa.array(~among(shared, key_hashes(keys.columns, operator), other(side).dealt)))

    def _operator(self, name: str) -> SavedOperator:
        entries = self._manifest.tasks[name]
        files = [file for entry in entries for file in entry.files]
        chain = self._manifest.operators.get(name, ())
        parts = self._manifest.state[name].parts if name in self._manifest.state else {}
        return SavedOperator(len(entries), chain, sum(file.keys for file in files), sum(file.size for file in files), parts)

    def __repr__(self) -> str:
        return f"<SavedJob {self.job!r}, checkpoint {self.checkpoint}: {', '.join(self.operators)}>"


def read_savepoint(path: str | Path) -> SavedJob:
    """Read a savepoint that `job.savepoint(path)` wrote, or the folder of a checkpoint.

    Raises ConnectorError if it can't be read, FlowError for anything but a path or URL.
    """
    return SavedJob(folder_or_url(path, "read_savepoint(...)"))


def _table(chunks: list[pa.RecordBatch], aggregates: tuple[str, ...]) -> pa.Table:
    """Join the chunks of one operator to a table; column types may have widened from chunk to chunk."""
    if chunks[0].schema.names[-1] != STATE:
        return pa.concat_tables([_renamed(chunk, aggregates) for chunk in chunks], promote_options="permissive")
    keys = pa.concat_tables([pa.table(chunk.drop_columns([STATE])) for chunk in chunks], promote_options="permissive")
    packed = [value for chunk in chunks for value in chunk.column(STATE).to_pylist()]
    return keys.append_column("state", value_column([None if value is None else unpack_value(unmarked(value)) for value in packed]))


def _renamed(chunk: pa.RecordBatch, aggregates: tuple[str, ...]) -> pa.Table:
    """Rename the columns for users: the engine's own begin with two underscores."""
    aggregated = INPUT in (chunk.schema.metadata or {})
    parts = [match for name in chunk.schema.names if aggregated and (match := PART.fullmatch(name)) is not None]
    own = len({match[1] for match in parts}) - len(aggregates)  # a session's bounds come before its aggregates
    named = dict(enumerate(aggregates, own))
    new = {match[0]: f"{named.get(int(match[1]), match[1])}.{match[2]}" for match in parts}
    names = ["rows" if aggregated and name.startswith(ROWS) else new.get(name, name.removeprefix("__")) for name in chunk.schema.names]
    table = pa.Table.from_batches([chunk]).rename_columns(names).replace_schema_metadata(None)
    if not aggregated or PANE not in chunk.schema.names:
        return table
    at = chunk.schema.names.index(PANE)
    return table.set_column(at, names[at], table.column(at).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")))
