"""Conversion of one element of a channel to a multipart message and back.

    header            msgpack array: kind, channel, attempt, sequence, then the kind's own fields
    body              of a batch: its Arrow IPC record batch message
    times             of a batch with event times: int64 microseconds, one per row
    schema            with the first batch of a schema: its Arrow IPC schema message

Sequence numbers of a channel count its messages from 0. A message that breaks any rule is a ProtocolError and leaves the decoder
as it was; nothing in a message can make it run code or read outside the message.

>>> from evenflow.actors.channels.headers import unpack
>>> encoder, decoder = ChannelEncoder(7, 0, "map[0]"), ChannelDecoder(7, 0)
>>> header, *frames = encoder.encode(Batch(pa.record_batch({"item": [1, 2, 3]})))
>>> decoder.decode(unpack(header), frames).to_rows()
[{'item': 1}, {'item': 2}, {'item': 3}]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.batch import Batch, Times
from ...engine.errors import ProtocolError, RecordError
from ...engine.protocol.elements import Element, End
from ...engine.protocol.ids import Attempt, ChannelId, attempt_name
from .headers import number, pack
from .schemas import loose_columns, plain_schema, read_schema, write_schema
from .signals import BATCH, BY_CODE, BY_TYPE

MAX_FRAME_BYTES = 1 << 30
"""The largest frame: a receiver closes the connection of a peer that announces a larger one."""

MAX_ROWS = 2**31 - 1

MAX_SCHEMAS = 16
"""The number of schemas that both ends of a channel remember; the seventeenth replaces the first."""

MAX_FRAMES = 4

_HAS_TIMES, _HAS_SCHEMA = 1, 2


class ChannelEncoder:
    """An encoder of the elements of one outgoing channel to messages, in order. `sender` names the operator in errors."""

    def __init__(self, channel: ChannelId, attempt: Attempt, sender: str) -> None:
        self.channel, self._attempt, self._sender = channel, attempt, sender
        self._sequence = 0
        self._schemas: list[tuple[pa.Schema, pa.Schema | None]] = []
        self._next_schema = 0

    def encode(self, element: Element) -> list[Any]:
        """Return the message's frames: bytes for the header, Arrow buffers for data, which refer to the batch where possible.

        Raises RecordError for a batch that can't be sent: an extension type, or more than `MAX_FRAME_BYTES`.
        """
        if type(element) is Batch:
            frames = self._batch(element)
        else:
            kind = BY_TYPE[type(element)]
            frames = [pack((kind.code, self.channel, self._attempt, self._sequence, *kind.to_fields(element)))]
        self._sequence += 1
        return frames

    def _batch(self, batch: Batch) -> list[Any]:
        rows = batch.rows
        schema_id, plain, schema_frame = self._schema(rows.schema)
        if plain is not None:
            rows = self._cast(rows, plain)
        frames = [b"", rows.serialize()]
        flags = 0
        if batch.times is not None:
            flags |= _HAS_TIMES
            frames.append(pa.py_buffer(np.ascontiguousarray(batch.times, dtype=np.int64)))
        if schema_frame is not None:
            flags |= _HAS_SCHEMA
            frames.append(schema_frame)
        if frames[1].size > MAX_FRAME_BYTES:
            raise RecordError(
                self._sender,
                f"a batch of {batch.num_rows:,} rows takes {frames[1].size:,} bytes, more than the {MAX_FRAME_BYTES:,} of a message; "
                "make batches smaller",
            )
        if schema_frame is not None:
            self._remember(schema_id, batch.rows.schema, plain)
        frames[0] = pack((BATCH, self.channel, self._attempt, self._sequence, schema_id, flags))
        return frames

    def _schema(self, schema: pa.Schema) -> tuple[int, pa.Schema | None, pa.Buffer | None]:
        """Return the id of `schema`, the schema to cast rows to (None: none), and the frame that announces it, if new."""
        for schema_id, (known, plain) in enumerate(self._schemas):
            if known.equals(schema):
                return schema_id, plain, None
        try:
            plain = plain_schema(schema)
            frame = write_schema(plain)
        except TypeError as error:
            raise RecordError(self._sender, f"rows can't be sent: {error}") from error
        return self._next_schema, None if plain.equals(schema) else plain, frame

    def _remember(self, schema_id: int, schema: pa.Schema, plain: pa.Schema | None) -> None:
        self._schemas[schema_id : schema_id + 1] = [(schema, plain)]
        self._next_schema = (schema_id + 1) % MAX_SCHEMAS

    def _cast(self, rows: pa.RecordBatch, plain: pa.Schema) -> pa.RecordBatch:
        try:
            return rows.cast(plain)
        except (pa.ArrowException, ValueError) as error:
            raise RecordError(self._sender, f"rows can't be sent as {plain}: {error}") from error


@dataclass(frozen=True, slots=True)
class _KnownSchema:
    schema: pa.Schema
    loose: tuple[int, ...]


class ChannelDecoder:
    """A decoder of the messages of one incoming channel to elements, in order."""

    def __init__(self, channel: ChannelId, attempt: Attempt) -> None:
        self._channel, self._attempt = channel, attempt
        self._sequence = 0
        self._ended = False
        self._schemas: list[_KnownSchema] = []

    def decode(self, header: tuple[Any, ...], frames: Sequence[Any]) -> Element:
        """Return the element of a message, from its unpacked header and its other frames (bytes-like, aligned to 8 bytes).

        A batch refers to the frames, which must not change. Raises ProtocolError, and changes nothing, for a message of another
        channel or attempt, out of sequence, after the end, or malformed anywhere.
        """
        if len(header) < 4:
            raise ProtocolError(f"a header must have at least 4 fields, got {len(header)}")
        kind, channel, attempt, sequence, *fields = header
        if channel != self._channel or attempt != self._attempt:
            raise self._error(f"a message of channel {channel!r}, attempt {attempt!r} arrived")
        if number(sequence, "sequence") != self._sequence:
            raise self._error(f"message {self._sequence} should come next, got message {sequence}")
        if self._ended:
            raise self._error(f"message {sequence} came after the end")
        element = self._batch(fields, frames) if kind == BATCH and type(kind) is int else self._signal(kind, fields, frames)
        self._sequence += 1
        self._ended = type(element) is End
        return element

    def _signal(self, code: Any, fields: list[Any], frames: Sequence[Any]) -> Element:
        kind = BY_CODE.get(code) if type(code) is int else None
        if kind is None:
            raise self._error(f"messages of kind {code!r} are unknown")
        if frames:
            raise self._error(f"a {kind.signal.__name__} has {len(frames)} frames too many")
        try:
            return kind.from_fields(*fields)
        except TypeError as error:
            raise self._error(f"a {kind.signal.__name__} has {len(fields)} fields: {error}") from error

    def _batch(self, fields: list[Any], frames: Sequence[Any]) -> Batch:
        if len(fields) != 2:
            raise self._error(f"a batch has 2 fields of its own, got {len(fields)}")
        schema_id = number(fields[0], "schema id", 0, MAX_SCHEMAS - 1)
        flags = number(fields[1], "flags", 0, _HAS_TIMES | _HAS_SCHEMA)
        expected = 1 + (flags & 1) + (flags >> 1)
        if len(frames) != expected:
            raise self._error(f"a batch with flags {flags} has {expected} frames, got {len(frames)}")
        known = self._new_schema(schema_id, frames[-1]) if flags & _HAS_SCHEMA else self._known_schema(schema_id)
        rows = self._rows(frames[0], known)
        batch = Batch(rows, self._times(frames[1], rows.num_rows) if flags & _HAS_TIMES else None)
        if flags & _HAS_SCHEMA:
            self._schemas[schema_id : schema_id + 1] = [known]
        return batch

    def _known_schema(self, schema_id: int) -> _KnownSchema:
        if schema_id >= len(self._schemas):
            raise self._error(f"schema {schema_id} is unknown, {len(self._schemas)} are known")
        return self._schemas[schema_id]

    def _new_schema(self, schema_id: int, frame: Any) -> _KnownSchema:
        if schema_id > len(self._schemas):
            raise self._error(f"new schema {schema_id} leaves a gap, {len(self._schemas)} are known")
        schema = read_schema(bytes(frame))
        return _KnownSchema(schema, loose_columns(schema))

    def _rows(self, frame: Any, known: _KnownSchema) -> pa.RecordBatch:
        """Return the rows of a body. Arrow checks its metadata while reading; the cheap `validate` checks that each buffer is
        long enough.

        Only the full check covers offsets inside variable-length columns: 4 ns per row, for those columns only.
        """
        try:
            rows = pa.ipc.read_record_batch(pa.py_buffer(frame), known.schema)
            rows.validate()
            for index in known.loose:
                rows.column(index).validate(full=True)
        except Exception as error:  # Arrow raises EOFError, OSError, KeyError and more for bytes that it can't read
            raise self._error(f"the body of a batch can't be read: {error}") from error
        if rows.num_rows > MAX_ROWS:
            raise self._error(f"a batch of {rows.num_rows:,} rows has more than the allowed {MAX_ROWS:,}")
        return rows

    def _times(self, frame: Any, num_rows: int) -> Times:
        size = memoryview(frame).nbytes
        if size != 8 * num_rows:
            raise self._error(f"a batch of {num_rows} rows has {size} bytes of event times instead of {8 * num_rows}")
        return np.frombuffer(frame, dtype=np.int64)

    def _error(self, problem: str) -> ProtocolError:
        return ProtocolError(f"channel {self._channel} of attempt {attempt_name(self._attempt)}: {problem}")
