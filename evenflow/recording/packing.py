"""Packs views as bytes: each has only the changes since the one before, unless it is whole.

The parts are the fields of a view and those of its stages. A part is omitted if its bytes are those of the last view. So routing tables,
which are large, are written only when they change.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import msgpack

from ..engine.errors import SnapshotError
from ..scheduler.protocol.view import JobView, StageView
from ..state.errors import EvenflowError
from .codec import Packing, Types, mapped, packed, unpacked

LARGEST = 1 << 28
"""Bytes of the largest view, unpacked; more means a damaged file."""

LEVEL = 3
"""The compression level: it saves nearly as much as the highest, at a tenth of its time."""

Parts = dict[str, bytes]


def _packings(types: Types, kind: type) -> dict[str, Packing]:
    hints = get_type_hints(kind)
    return {field.name: types.of(hints[field.name]) for field in fields(kind) if field.name != "stages"}


class ViewPacker:
    """Packs the views of one file, whose header has the `fields`."""

    def __init__(self) -> None:
        self._types = Types()
        self._view, self._stage = _packings(self._types, JobView), _packings(self._types, StageView)
        self._last: dict[str, Parts] = {}

    @property
    def fields(self) -> dict[str, tuple[str, ...]]:
        """The fields of all classes in views."""
        return self._types.fields

    def pack(self, view: JobView, *, whole: bool) -> bytes:
        """Pack a view, with all parts if `whole`."""
        parts = {"": _parts(self._view, view), **{stage.name: _parts(self._stage, stage) for stage in view.stages}}
        last = {} if whole else self._last
        changed = {owner: _changed(new, last.get(owner, {})) for owner, new in parts.items()}
        self._last = parts
        return zlib.compress(packed(changed), LEVEL)


def _parts(packings: Mapping[str, Packing], owner: Any) -> Parts:
    return {name: packed(packing.pack(getattr(owner, name))) for name, packing in packings.items()}


def _changed(new: Parts, last: Parts) -> Parts:
    return {name: data for name, data in new.items() if last.get(name) != data}


class ViewReader:
    """Reads the views of a file in order, beginning with a whole one. `written`: the `fields` of the file's header."""

    def __init__(self, written: Mapping[str, tuple[str, ...]]) -> None:
        types = Types(written)
        self._view, self._stage = _packings(types, JobView), _packings(types, StageView)
        self._last: dict[str, dict[str, Any]] = {}

    def read(self, data: bytes) -> JobView:
        """Read the next view. Raises SnapshotError for bytes that are not a view."""
        try:
            return self._read(data)
        except (zlib.error, ValueError, TypeError, LookupError, OverflowError, msgpack.UnpackException, EvenflowError) as error:
            raise SnapshotError(f"a view of a recording can't be read: {type(error).__name__}: {error}") from error

    def _read(self, data: bytes) -> JobView:
        unzip = zlib.decompressobj()
        changed: dict[str, Parts] = mapped(unpacked(unzip.decompress(data, LARGEST)))
        if unzip.unconsumed_tail:
            raise ValueError(f"more than {LARGEST} bytes")
        read: dict[str, dict[str, Any]] = {}
        for owner, parts in changed.items():
            packings = self._stage if owner else self._view
            new = {name: packings[name].unpack(unpacked(part)) for name, part in mapped(parts).items() if name in packings}
            read[owner] = {**self._last.get(owner, {}), **new}
        self._last = read
        stages = tuple(StageView(**parts) for owner, parts in read.items() if owner)
        return JobView(**read[""], stages=stages)
