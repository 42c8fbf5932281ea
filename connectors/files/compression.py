"""Reading of compressed files as one decompressed stream, so that a position in it is a number of rows.

>>> import gzip, pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv.gz")
>>> _ = path.write_bytes(gzip.compress(b"n") + gzip.compress(b"1"))
>>> with open_file(str(path), compression_of("infer", "read")) as file:
...     file.read()
b'n1'
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import pyarrow as pa

from ...engine.errors import FlowError
from .remote import is_remote, open_remote

Compression: TypeAlias = Literal["infer", "gzip", "bz2", "zstd", "lz4"] | None
"""The compression of files: "infer" goes by the endings of their names, None means uncompressed."""

_BY_ENDING = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}

ENDINGS = ("", *_BY_ENDING)
"""Endings of files that are decompressed while they are read."""

_ARROWS = {"infer": "detect", "gzip": "gzip", "bz2": "bz2", "zstd": "zstd", "lz4": "lz4", None: None}


def compression_of(compression: Compression, operator: str) -> str | None:
    """Return Arrow's name of `compression`. Raises FlowError if it is unknown."""
    if compression not in _ARROWS:
        known = ", ".join(f'"{name}"' for name in _ARROWS if name is not None)
        raise FlowError(f"operator `{operator}`: compression {compression!r} is unknown: use {known} or None")
    return _ARROWS[compression]


def open_file(path: str, compression: str | None) -> pa.NativeFile:
    """Open a file for reading its decompressed bytes: all its members or frames in sequence.

    `compression` is Arrow's name. Raises OSError, also during reading, for a file that is truncated or damaged.
    """
    if not is_remote(path):
        return pa.input_stream(path, compression=compression)
    if compression == "detect":  # Arrow detects it only when it opens the path itself
        compression = next((name for ending, name in _BY_ENDING.items() if path.endswith(ending)), None)
    return pa.input_stream(open_remote(path), compression=compression)
