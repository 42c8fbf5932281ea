"""Column types between Spark, the Parquet files of the exchange folder, and the engine's Arrow batches.

>>> spark_refuses(pa.list_(pa.timestamp("ns"))), spark_refuses(pa.float16())
(None, "Spark's Parquet reader has no such type; cast it to float32 first")
>>> parquet_type(pa.list_(pa.timestamp("ns")))
ListType(list<item: timestamp[us]>)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ...engine.errors import ConnectorError
from ...engine.types.casting import cast

if TYPE_CHECKING:
    from pyspark.sql import types as st

_PLAIN = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "daytimeinterval": pa.duration("us"),
    "yearmonthinterval": pa.int32(),  # months: Arrow's own month interval can't be written to files or be a key
    "void": pa.null(),
}

_ADVICE = {
    "variant": "turn it into text with to_json, or take its parts with variant_get",
    "interval": "use a day-time interval (make_dt_interval)",
    "time": "cast it to a string or to a count of microseconds",
}


def engine_schema(schema: st.StructType, operator: str) -> pa.Schema:
    """Return the Arrow types of a Spark DataFrame's columns.

    Timestamps are in microseconds (`timestamp` in UTC, `timestamp_ntz` without a zone), day-time intervals are durations,
    year-month intervals counts of months (int32). Raises ConnectorError naming the first column of a type that Parquet or Arrow
    can't hold.
    """
    return pa.schema([(field.name, _engine_type(field.dataType, field.name, operator)) for field in schema.fields])


def _engine_type(kind: st.DataType, column: str, operator: str) -> pa.DataType:
    from pyspark.sql import types as st

    if isinstance(kind, st.ArrayType):
        return pa.list_(_engine_type(kind.elementType, f"{column}[]", operator))
    if isinstance(kind, st.MapType):
        return pa.map_(_engine_type(kind.keyType, f"{column} keys", operator), _engine_type(kind.valueType, f"{column} values", operator))
    if isinstance(kind, st.StructType):
        return pa.struct([(field.name, _engine_type(field.dataType, f"{column}.{field.name}", operator)) for field in kind.fields])
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, st.UserDefinedType):
        return _engine_type(kind.sqlType(), column, operator)
    name = type(kind).typeName().replace(" ", "")
    if name not in _PLAIN:
        advice = _ADVICE.get(name, "cast it to another type")
        raise ConnectorError(
            f"operator `{operator}`: column `{column}` is {kind.simpleString()}, which can't be read from Spark: {advice} first"
        )
    return _PLAIN[name]


def as_engine(rows: pa.RecordBatch, schema: pa.Schema, path: str, operator: str) -> pa.RecordBatch:
    """Convert rows of the file at `path`, which Spark wrote, to the types of `schema` (from `engine_schema`).

    Spark writes day-time intervals as integers, for example. Raises ConnectorError naming file and column for a value that doesn't
    fit: the file may be that of an earlier run with other types.
    """
    if rows.schema.equals(schema):
        return rows
    columns = []
    for field in schema:
        try:
            columns.append(cast(rows.column(field.name), field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            problem = f"column `{field.name}` of {path} isn't {field.type}, as the DataFrame says: {error}"
            raise ConnectorError(f"operator `{operator}`: {problem}") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def spark_refuses(kind: pa.DataType) -> str | None:
    """Return why Spark can't read a column of this type from Parquet, or None if it can."""
    if pa.types.is_dictionary(kind):
        return spark_refuses(kind.value_type)
    if pa.types.is_nested(kind):
        if pa.types.is_union(kind):
            return "Spark has no unions; make a struct of it"
        if kind.num_fields == 0:
            return "a struct without fields can't be written to Parquet"
        return next((problem for i in range(kind.num_fields) if (problem := spark_refuses(kind.field(i).type))), None)
    if pa.types.is_float16(kind):
        return "Spark's Parquet reader has no such type; cast it to float32 first"
    if pa.types.is_time(kind):
        return "Spark's Parquet reader has no time of day; cast it to a string or to an integer first"
    if pa.types.is_interval(kind):
        return "Spark's Parquet reader has no such type; use a duration"
    if pa.types.is_decimal(kind) and kind.precision > 38:
        return "Spark's decimals have at most 38 digits"
    return None


def parquet_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is written for Spark: timestamps and durations in microseconds, dates in days, all others
    unchanged.
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_map(kind):
        return pa.map_(parquet_type(kind.key_type), parquet_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(kind.field(i).name, parquet_type(kind.field(i).type)) for i in range(kind.num_fields)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(parquet_type(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(parquet_type(kind.value_type), kind.list_size)
    return kind


def parquet_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns to write for Spark, for rows with `schema`.

    A column that is all null is omitted: Spark would take it for an integer column, and then accept nothing else in later files.
    If all columns are null, they are kept, so that the rows are not lost.
    """
    fields = [pa.field(field.name, parquet_type(field.type)) for field in schema if not pa.types.is_null(field.type)]
    return pa.schema(fields or [(name, pa.int32()) for name in schema.names])


def as_parquet(rows: pa.RecordBatch, schema: pa.Schema, operator: str) -> pa.RecordBatch:
    """Convert rows to the columns of `schema` (from `parquet_schema`). Raises ConnectorError naming a column that has
    nanoseconds, or times of the day in dates.
    """
    columns = []
    for field in schema:
        column = rows.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid as error:
            lost = "its times of the day in Spark's dates" if pa.types.is_date(field.type) else "digits in Spark's microseconds"
            raise ConnectorError(f"operator `{operator}`: column `{field.name}` loses {lost} ({error}); round it first") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
