"""Compressed files of every format: the rows of the plain file, from any position, and an error for every damaged one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.json import read_json
from evenflow.connectors.formats.text import read_text
from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.source import Source, SourceReader

ENDINGS = {"gzip": ".gz", "bz2": ".bz2", "zstd": ".zst", "lz4": ".lz4"}
KINDS = {
    "csv": (read_csv, b"n\n", b"%d\n"),
    "json": (read_json, b"", b'{"n": %d}\n'),
    "txt": (read_text, b"", b"%d\n"),
}

every_compression = pytest.mark.parametrize("compression", [*ENDINGS])
every_kind = pytest.mark.parametrize("kind", [*KINDS])


def compressed(content: bytes, compression: str) -> bytes:
    buffer = pa.BufferOutputStream()
    with pa.CompressedOutputStream(buffer, compression) as stream:
        stream.write(content)
    return bytes(buffer.getvalue())


def content(kind: str, rows: int) -> bytes:
    _, header, row = KINDS[kind]
    return header + b"".join(row % number for number in range(rows))


def source_of(kind: str, path: Path, **options: str) -> Source:
    source: Source = KINDS[kind][0](path, **options)
    source.start()
    return source


def drained(reader: SourceReader, max_rows: int = 100) -> list[int]:
    rows: list[int] = []
    while not reader.finished:
        batch = reader.poll(max_rows)
        rows += [] if batch is None else [int(value) for value in batch.rows.column(0).to_pylist()]
    reader.close()
    return rows


@every_kind
@every_compression
@given(rows=st.integers(0, 30), members=st.integers(1, 4), before=st.integers(0, 30))
def test_a_compressed_file_of_several_members_is_read_from_any_position(tmp_path_factory, kind, compression, rows, members, before):
    whole = content(kind, rows)
    cuts = sorted({len(whole) * part // members for part in range(members + 1)})  # Arrow rejects an empty bz2 member
    path = tmp_path_factory.mktemp("in") / f"a.{kind}{ENDINGS[compression]}"
    path.write_bytes(b"".join(compressed(whole[low:high], compression) for low, high in pairwise(cuts)))
    source = source_of(kind, path.parent)
    first, second = source.reader(0, 1), source.reader(0, 1)
    batch = first.poll(before) if before else None
    second.seek(first.position())
    first.close()
    assert [*range(min(before, rows)), *drained(second)] == list(range(rows))
    assert (0 if batch is None else batch.num_rows) == min(before, rows)


@every_kind
@every_compression
@given(left=st.floats(0, 1, exclude_max=True))
def test_a_compressed_file_that_was_cut_anywhere_is_named(tmp_path_factory, kind, compression, left):
    whole = compressed(content(kind, 5_000), compression)
    path = tmp_path_factory.mktemp("in") / f"a.{kind}{ENDINGS[compression]}"
    path.write_bytes(whole[: max(1, int(left * len(whole)))])
    with pytest.raises(ConnectorError, match=f"operator `read_{'text' if kind == 'txt' else kind}`: {path} can't be read"):
        drained(source_of(kind, path).reader(0, 1), 10_000)


@every_kind
@pytest.mark.parametrize("compression", ["gzip", "bz2"])
def test_a_compressed_file_with_a_wrong_checksum_is_named(tmp_path, kind, compression):
    path = tmp_path / f"a.{kind}{ENDINGS[compression]}"
    damaged = bytearray(compressed(content(kind, 1_000), compression))
    damaged[-6] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(ConnectorError, match=str(path)):
        drained(source_of(kind, path).reader(0, 1))


@every_kind
def test_a_file_that_is_not_what_its_ending_says_is_named(tmp_path, kind):
    (tmp_path / f"a.{kind}.gz").write_bytes(content(kind, 10))
    with pytest.raises(ConnectorError, match=rf"a\.{kind}\.gz can't be read"):
        drained(source_of(kind, tmp_path).reader(0, 1))


@every_kind
@every_compression
def test_a_compression_that_the_name_does_not_show_can_be_given(tmp_path, kind, compression):
    (tmp_path / f"a.{kind}").write_bytes(compressed(content(kind, 10), compression))
    assert drained(source_of(kind, tmp_path, compression=compression).reader(0, 1)) == list(range(10))


@every_kind
def test_a_plain_file_may_have_any_ending(tmp_path, kind):
    (tmp_path / "a.gz").write_bytes(content(kind, 10))
    assert drained(source_of(kind, tmp_path / "a.gz", compression=None).reader(0, 1)) == list(range(10))


@every_kind
def test_an_unknown_compression_is_refused(tmp_path, kind):
    with pytest.raises(FlowError, match=r'compression \'rar\' is unknown: use "infer", "gzip", "bz2", "zstd", "lz4" or None'):
        source_of(kind, tmp_path, compression="rar")
