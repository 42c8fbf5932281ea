"""Tables of Spark's catalog as destinations of rows, which arrive as they are or not at all.

`insertInto` casts rows to the table's types: 1e300 becomes infinite in a FLOAT, 2.5 becomes 2 in an INT, a timestamp loses its time
of day in a DATE. So columns of other types are compared with what the table would hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...engine.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql import types as st


def append_to_table(df: DataFrame, table: str, operator: str) -> None:
    """Append rows to a table of the catalog, by column name, creating a missing table; columns that `df` lacks are null.

    Raises ConnectorError naming a column that the table lacks, or one with a value that would change in the table's type.
    """
    from pyspark.sql import functions as sf

    if not df.sparkSession.catalog.tableExists(table):
        df.write.saveAsTable(table)
        return
    present = {name.lower(): name for name in df.columns}
    wanted = df.sparkSession.table(table).schema.fields
    extra = set(present) - {field.name.lower() for field in wanted}
    if extra:
        raise ConnectorError(
            f"operator `{operator}`: table {table} has no column `{present[min(extra)]}`; add it with ALTER TABLE (a column that "
            "was all null when the table was created is not in it), or remove it from the rows"
        )
    _refuse_changes(df, {present[field.name.lower()]: field.dataType for field in wanted if field.name.lower() in present}, table, operator)
    columns = [
        df[f"`{present[field.name.lower()]}`"] if field.name.lower() in present else sf.lit(None).cast(field.dataType).alias(field.name)
        for field in wanted
    ]
    df.select(*columns).write.insertInto(table)


def _refuse_changes(df: DataFrame, types: dict[str, st.DataType], table: str, operator: str) -> None:
    """Raise ConnectorError for a value that would change in the table's type, except a float that is rounded to a shorter one."""
    from pyspark.sql import functions as sf

    changed = {
        name: _changed(df[f"`{name}`"], kind, types[name])
        for name, kind in ((field.name, field.dataType) for field in df.schema.fields)
        if kind.simpleString() != types[name].simpleString() and not _holds_all(kind, types[name])
    }
    for name, condition in changed.items():
        value = df.where(condition).select(sf.col(f"`{name}`").cast("string")).first()
        if value is not None:
            kinds = f"{df.schema[name].dataType.simpleString()}, and {types[name].simpleString()} in table {table}"
            raise ConnectorError(
                f"operator `{operator}`: column `{name}` is {kinds}, which would change {value[0]}; give the rows the table's type, or the "
                "table a larger one"
            )


def _holds_all(kind: st.DataType, target: st.DataType) -> bool:
    """Return True if every value of `kind` has its own in `target`, so that no rows need to be compared."""
    from pyspark.sql import types as st

    integers: list[type[st.DataType]] = [st.ByteType, st.ShortType, st.IntegerType, st.LongType]
    if type(kind) in integers and type(target) in integers:
        return integers.index(type(kind)) < integers.index(type(target))
    small = (st.ByteType, st.ShortType, st.IntegerType)
    return isinstance(target, (st.StringType, st.VarcharType, st.CharType)) or (
        isinstance(target, st.DoubleType) and isinstance(kind, (*small, st.FloatType))
    )


def _changed(column: Column, kind: st.DataType, target: st.DataType) -> Column:
    """Return the condition that a value isn't the same in `target`."""
    from pyspark.sql import functions as sf
    from pyspark.sql import types as st

    there = column.try_cast(target)
    if isinstance(target, (st.FloatType, st.DoubleType)) and isinstance(kind, (st.DoubleType, st.DecimalType)):
        return (sf.abs(there) == float("inf")) & (sf.abs(column) != float("inf"))
    return ~there.try_cast(kind).eqNullSafe(column)
