"""Values of all types come back from an Iceberg table as they were written, or are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iceberg_tables import catalog_options, created, table_of
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, UUIDType

import evenflow as ef
from evenflow.connectors.iceberg.types import UnsupportedTypeError, engine_type, stored_type
from evenflow.engine.batch import Batch

PLAIN = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.float16(), pa.float32(),
    pa.float64(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(5), pa.date32(), pa.date64(), pa.time32("s"),
    pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"),
    pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Paris"), pa.decimal128(5, 2), pa.decimal128(18, 0), pa.decimal128(38, 10),
    pa.dictionary(pa.int32(), pa.string()),
]  # fmt: skip

KINDS = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        st.tuples(st.sampled_from([pa.string(), pa.int64()]), inner).map(lambda pair: pa.map_(*pair)),
        st.lists(inner, min_size=1, max_size=2).map(lambda kinds: pa.struct([(f"f{i}", kind) for i, kind in enumerate(kinds)])),
    ),
    max_leaves=3,
)

REFUSED = [
    pa.uint64(), pa.duration("us"), pa.month_day_nano_interval(), pa.decimal256(50, 2), pa.decimal128(5, -2), pa.struct([]), pa.null(),
    pa.list_(pa.null()), pa.dense_union([pa.field("a", pa.int64())]),
]  # fmt: skip


def read(folder, **options):
    source = ef.read_iceberg("shop.rows", catalog="test", options=catalog_options(folder), **options)
    source.start()
    rows = source.reader(0, 1).poll(100).rows
    source.stop()
    return rows


@settings(max_examples=100)
@given(kind=KINDS)
def test_a_type_of_rows_is_the_same_in_the_table_and_back(kind):
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import assign_fresh_schema_ids

    held = stored_type(kind)
    assert stored_type(held) == held
    schema = assign_fresh_schema_ids(Catalog._convert_schema_if_needed(pa.schema([("x", held)])))
    assert engine_type(schema.fields[0].field_type) == held


@pytest.mark.parametrize("kind", REFUSED, ids=str)
def test_types_that_a_table_can_not_hold_are_refused(kind):
    with pytest.raises(UnsupportedTypeError):
        stored_type(kind)


def values_of(kind):
    """Return a value, None and another value, as a column."""
    types = pa.types
    if types.is_dictionary(kind):
        return pa.array(["a", None, "b"]).dictionary_encode()
    if types.is_timestamp(kind):
        moments = [datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC), None, datetime(1969, 12, 31, tzinfo=UTC)]
        return pa.array(moments, pa.timestamp("s", "UTC")).cast(kind)
    if types.is_decimal(kind):
        return pa.array(["123", None, "-7"]).cast(kind)
    if types.is_date64(kind):
        return pa.array([0, None, 86_400_000], pa.int64()).cast(kind)
    if types.is_date(kind) or types.is_time(kind):
        return pa.array([0, None, 1000], pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if types.is_integer(kind) or types.is_floating(kind):
        return pa.array([1, None, 100]).cast(kind)
    if types.is_boolean(kind):
        return pa.array([True, None, False])
    texts = types.is_string(kind) or types.is_large_string(kind)
    return pa.array(["a", None, ""] if texts else [b"12345", None, b"\x00\xff\x00\xff\x00"], kind)


def test_values_of_all_types_come_back_as_the_library_reads_them(tmp_path):
    columns = {}
    for number, kind in enumerate(PLAIN):
        columns[f"c{number}"] = values = values_of(kind)
        columns[f"l{number}"] = pa.array([values.to_pylist(), None, []], pa.list_(stored_type(kind)))
    sink = ef.write_iceberg("shop.rows", catalog="test", options=catalog_options(tmp_path))
    sink.start()
    writer = sink.writer(0, 1)
    rows = pa.record_batch(columns)
    writer.write(Batch(rows))
    sink.commit(1, writer.prepare(1))
    writer.close()
    found, theirs = read(tmp_path), table_of(tmp_path).scan().to_arrow()
    for name in rows.schema.names:
        kind = stored_type(rows.schema.field(name).type)
        assert found.schema.field(name).type == kind, name
        assert found.column(name).equals(rows.column(name).cast(kind)), name
        assert theirs.column(name).combine_chunks().cast(kind).equals(found.column(name)), name


def test_times_that_would_lose_nanoseconds_are_refused_when_they_are_written_and_read(tmp_path):
    fine = pa.array([1_001], pa.timestamp("ns"))
    sink = ef.write_iceberg("shop.rows", catalog="test", options=catalog_options(tmp_path))
    sink.start()
    with pytest.raises(
        ef.ConnectorError, match=r"column `at` can't be timestamp\[us\] in the table shop.rows .*; round or cast\(\) it first"
    ):
        sink.writer(0, 1).write(Batch(pa.record_batch({"at": fine})))
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"at": pa.array([1_000], pa.timestamp("ns"))})))
    parts = writer.prepare(1)
    sink.commit(1, parts)
    path = parts[0]["files"][0][2].removeprefix("file://")
    ids = pq.read_schema(path)
    pq.write_table(pa.table([fine], pa.schema([pa.field("at", pa.timestamp("ns"), metadata=ids.field("at").metadata)])), path)
    with pytest.raises(ef.ConnectorError, match=r"column `at` of .* isn't timestamp\[us\], as the table says"):
        read(tmp_path)


def test_a_uuid_is_its_bytes_when_it_is_read_and_refused_when_it_is_written(tmp_path):
    value = UUID("12345678-1234-5678-1234-567812345678")
    table = created(tmp_path, Schema(NestedField(1, "id", UUIDType())))
    table.append(pa.table({"id": pa.array([value.bytes], pa.uuid())}))
    assert read(tmp_path).column("id").to_pylist() == [value.bytes]
    sink = ef.write_iceberg("shop.rows", catalog="test", options=catalog_options(tmp_path))
    sink.start()
    with pytest.raises(ef.ConnectorError, match=r"column `id` of the table shop.rows .*: it is uuid, which can't be written"):
        sink.writer(0, 1).write(Batch(pa.record_batch({"id": pa.array([value.bytes], pa.binary(16))})))


def test_a_file_of_another_type_than_the_table_is_refused(tmp_path):
    table = created(tmp_path, pa.schema({"n": pa.int64()}))
    table.append(pa.table({"n": [1]}))
    [task] = table.scan().plan_files()
    path = task.file.file_path.removeprefix("file://")
    metadata = pq.read_schema(path).field("n").metadata
    pq.write_table(pa.table([["1"]], pa.schema([pa.field("n", pa.string(), metadata=metadata)])), path)
    with pytest.raises(ef.ConnectorError, match=r"column `n` of .*parquet, a file of .*, is string, and int64 in the table"):
        read(tmp_path)


def test_rows_that_are_deleted_by_delete_files_are_refused(tmp_path):
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    table = created(tmp_path, pa.schema({"n": pa.int64()}))
    table.append(pa.table({"n": [1, 2]}))
    [task] = table.scan().plan_files()
    transaction = table.transaction()
    with transaction.update_snapshot().fast_append() as append:
        deletes = DataFile.from_args(
            content=DataFileContent.POSITION_DELETES,
            file_path=f"{tmp_path}/deletes.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=1,
            file_size_in_bytes=1,
            spec_id=0,
        )
        written = append._manifests

        def with_deletes():
            from pyiceberg.manifest import ManifestContent

            manifests = written()
            for manifest in manifests[:1]:
                manifest[3] = ManifestContent.DELETES
            return manifests

        append.append_data_file(deletes)
        append._manifests = with_deletes
    transaction.commit_transaction()
    for follow in (False, True):
        with pytest.raises(ef.ConnectorError, match=r"has rows that are deleted by delete files, which isn't supported"):
            read(tmp_path, follow=follow)
    assert task.file.record_count == 2
