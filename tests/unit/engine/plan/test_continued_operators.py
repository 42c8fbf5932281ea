"""The operators of new workers: new code, in the state in which the running job's sources and sinks were started."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evenflow.connectors.formats.parquet import read_parquet
from evenflow.connectors.formats.parquet_sink import write_parquet
from evenflow.engine.joins.sides import LEFT
from evenflow.engine.joins.within import Always
from evenflow.engine.operators.joins.join import Join
from evenflow.engine.operators.joins.lookup import Lookup
from evenflow.engine.operators.rows.map import Map
from evenflow.engine.operators.rows.read import Read
from evenflow.engine.operators.rows.write import Write
from evenflow.engine.plan.upgrade.continued import continued
from evenflow.engine.plan.upgrade.verdicts import Verdict


def test_unchanged_operator_is_the_running_one():
    old = Map(lambda row: row)
    assert continued(old, Map(lambda row: row), Verdict.UNCHANGED) is old


def test_changed_operator_is_the_new_one():
    new = Map(lambda row: row)
    assert continued(Map(lambda row: row), new, Verdict.CODE) is new


def test_restart_is_refused():
    with pytest.raises(ValueError, match="needs a restart"):
        continued(Map(len), Map(len), Verdict.RESTART)


def test_source_and_sink_continue_the_started_ones(tmp_path):
    old_sink, new_sink = write_parquet(tmp_path), write_parquet(tmp_path, compression="gzip")
    old_sink.start()
    sink = continued(Write(old_sink), Write(new_sink), Verdict.SETTINGS).sink
    assert (sink.whole_run, sink._compression) == (old_sink.whole_run, "gzip")
    old = read_parquet(tmp_path, follow=True, schema={"a": "int64"})
    old.start()
    source = continued(
        Read(old), Read(read_parquet(tmp_path, follow=True, poll_every="9s", schema={"a": "int64"})), Verdict.SETTINGS
    ).source
    assert (source.follow.poll_every, source.known_columns()) == (9, old.known_columns())


def test_lookup_reads_the_started_table_and_a_join_knows_the_columns():
    table = read_parquet("/names")
    found = continued(Lookup(table, {"k": "k"}), Lookup(read_parquet("/names"), {"k": "k"}, "inner"), Verdict.SETTINGS)
    assert (found.table, found.sources, found.how) == (table, (table,), "inner")
    schemas = {LEFT: pa.schema({"a": "int64"})}
    old = Join(("a",), ("a",), Always(), "inner", "_right", schemas=schemas)
    assert continued(old, Join(("a",), ("a",), Always(), "inner", "_other"), Verdict.SETTINGS).schemas == schemas
