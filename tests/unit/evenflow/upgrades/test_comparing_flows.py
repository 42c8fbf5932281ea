"""Verdicts about flows of two versions: columns on exchanges, sources and sinks of all kinds, operators without names."""

from __future__ import annotations

import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.connectors.formats.parquet import ParquetSource
from evenflow.connectors.python.discard import discard
from evenflow.engine.plan.upgrade.comparison import compare
from evenflow.engine.source import Source

ROWS = [{"k": "a", "v": 1, "w": 2}, {"k": "b", "v": 2, "w": 3}]
WORDS = pa.schema({"k": pa.string(), "v": pa.int64(), "w": pa.int64(), "note": pa.string()})


def plan(build, **options):
    flow = ef.Dataflow("flow")
    build(flow)
    return flow.plan(**options)


def verdicts(old, new, **options):
    found = compare(plan(old, **options), plan(new, **options))
    return {change.operator: str(change.verdict) for change in found.operators if change.verdict != "unchanged"}, found


def reasons(found):
    return " | ".join(change.why for change in found.operators if change.verdict == "restart")


def counting(flow, source=None, condition=None, sink=None):
    rows = flow.read(source if source is not None else ef.from_items(ROWS))
    rows = rows if condition is None else rows.filter(condition)
    rows.key_by("k").aggregate(n=ef.sum("v")).write(sink if sink is not None else discard())


def parquet():
    return ef.read_parquet("/data", schema=WORDS)


class TestColumns:
    def test_filter_that_reads_another_column_is_live_if_it_runs_with_the_source(self):
        old, found = verdicts(
            lambda flow: counting(flow, parquet(), ef.col("v") > 1), lambda flow: counting(flow, parquet(), ef.col("w") > 1)
        )
        assert old == {"read_parquet": "settings", "filter": "code"}
        assert found.changed_stages == ("read_parquet",)
        assert "it reads other columns or rows" in found.table()

    def test_filter_that_is_an_expression_no_more_is_live_if_it_runs_with_the_source(self):
        old, _ = verdicts(
            lambda flow: counting(flow, parquet(), ef.col("v") > 1), lambda flow: counting(flow, parquet(), lambda row: row["w"] > 1)
        )
        assert old == {"read_parquet": "settings", "filter": "code"}

    def test_column_that_the_source_of_another_stage_does_not_read_needs_a_restart(self):
        def flow_of(column):
            def build(flow):
                rows = flow.read(ef.read_csv("/data"))
                rows.filter(ef.col(column) > 1).parallelism(3).key_by("k").aggregate(n=ef.sum("v")).write(discard())

            return build

        _, found = verdicts(flow_of("v"), flow_of("w"))
        assert "its input has other columns, and rows of both versions would mix: `w` is new" in reasons(found)

    def test_columns_of_a_map_with_a_schema_are_compared_where_they_are_sent(self):
        def flow_of(schema):
            return lambda flow: (
                flow.read(ef.from_items(ROWS)).map(lambda row: row, schema=schema).key_by("k").stateful_map(f).write(discard())
            )

        def f(state, row):
            return state, row

        _, found = verdicts(flow_of({"k": "string", "v": "int64"}), flow_of({"k": "string", "v": "float64", "x": "int64"}))
        assert reasons(found) == "its input has other columns, and rows of both versions would mix: `v` was int64 and is double, `x` is new"
        same, found = verdicts(flow_of({"k": "string", "v": "int64"}), flow_of({"v": "int64", "k": "string"}))
        assert same == {"map": "settings"}
        assert not found.needs_restart

    def test_column_that_no_reader_needs_may_be_new(self):
        def flow_of(schema):
            return lambda flow: (
                flow.read(ef.from_items(ROWS)).map(lambda row: row, schema=schema).key_by("k").aggregate(n=ef.sum("v")).write(discard())
            )

        changed, _ = verdicts(flow_of({"k": "string", "v": "int64"}), flow_of({"k": "string", "v": "int64", "x": "int64"}))
        assert changed == {"map": "settings"}

    def test_map_without_a_schema_may_return_other_columns(self):
        def flow_of(function):
            return lambda flow: flow.read(ef.from_items(ROWS)).map(function).key_by("k").aggregate(n=ef.count()).write(discard())

        changed, _ = verdicts(flow_of(lambda row: row), flow_of(lambda row: row | {"x": 1}))
        assert changed == {"map": "code"}


class TestSources:
    def test_default_source_continues_only_with_the_same_settings(self):
        changed, found = verdicts(lambda flow: counting(flow, ef.from_items(ROWS)), lambda flow: counting(flow, ef.from_items(ROWS[:1])))
        assert changed == {"from_items": "restart"}
        assert reasons(found) == "its settings changed: `rows` changed"

    @pytest.mark.parametrize(
        ("options", "verdict", "why"),
        [
            ({}, None, ""),
            ({"group_id": "lag"}, "settings", "`group_id` changed"),
            ({"discover_every": "5s"}, "settings", "`discover_every` changed"),
            ({"on_lost_offsets": "earliest"}, "settings", "`on_lost_offsets` changed"),
            ({"on_error": "skip"}, "settings", "`on_error` changed"),
            ({"options": {"fetch.max.bytes": 1000}}, "settings", "`options` changed"),
            ({"bootstrap": "other:9092"}, "restart", "`bootstrap` changed"),
            ({"topics": ["clicks", "views"]}, "restart", "`topics` changed"),
            ({"start": "latest"}, "restart", "`start` changed"),
            ({"max_delay": "1s"}, "restart", "`event_time` changed"),
        ],
    )
    def test_kafka_source_continues_with_settings_of_its_client(self, options, verdict, why):
        pytest.importorskip("confluent_kafka")

        def flow_of(**changed):
            given = {"topics": "clicks", "bootstrap": "here:9092", "schema": {"k": "string", "v": "int64"}, "event_time": "v", **changed}
            return lambda flow: counting(flow, ef.read_kafka(given.pop("topics"), **given))

        changed, found = verdicts(flow_of(), flow_of(**options))
        assert changed == ({} if verdict is None else {"read_kafka": verdict})
        assert why in found.table()

    def test_kafka_source_without_a_schema_reads_no_other_columns(self):
        pytest.importorskip("confluent_kafka")

        def flow_of(column):
            return lambda flow: counting(flow, ef.read_kafka("clicks", bootstrap="here:9092"), ef.col(column) > 1)

        changed, found = verdicts(flow_of("v"), flow_of("w"))
        assert changed == {"read_kafka": "restart", "filter": "code"}
        assert "give them in schema=" in found.table()

    def test_source_that_cannot_read_other_columns_later_needs_a_restart(self):
        class Narrow(Source):
            name = "narrow"
            timed = False

            def reading(self, needed):
                narrow = Narrow()
                narrow.needed = needed
                return narrow

            def reader(self, index, parallelism):
                raise NotImplementedError

        changed, found = verdicts(lambda flow: counting(flow, Narrow()), lambda flow: counting(flow, Narrow()))
        assert changed == {}
        changed, found = verdicts(
            lambda flow: counting(flow, Narrow(), ef.col("v") > 1), lambda flow: counting(flow, Narrow(), ef.col("w") > 1)
        )
        assert changed == {"narrow": "restart", "filter": "code"}
        assert reasons(found) == "it can't read other columns or rows while the job runs"

    def test_rate_of_generated_rows_may_change(self):
        def flow_of(**options):
            return lambda flow: flow.read(ef.generate(total=10, event_rate=10.0, **options)).write(discard())

        assert verdicts(flow_of(rate=5.0), flow_of(rate=7.0, every="5ms", rows_per_batch=100))[0] == {"generate": "settings"}
        assert verdicts(flow_of(rate=5.0), flow_of(rate=5.0, seed=1))[0] == {"generate": "restart"}

    def test_partitions_of_a_generator_need_a_restart_and_its_pauses_do_not(self):
        def rows(partition, position):
            yield {"k": "a", "v": 1}, 1

        def flow_of(**options):
            return lambda flow: counting(flow, ef.from_generator(rows, **options))

        assert verdicts(flow_of(partitions=2), flow_of(partitions=2, poll_every="3s"))[0] == {"from_generator": "settings"}
        assert verdicts(flow_of(partitions=2), flow_of(partitions=3))[0] == {"from_generator": "restart"}

    def test_source_that_is_lost_with_its_process_needs_a_restart_if_its_workers_change(self):
        class Lost(ParquetSource):
            lost_with_process = "a temporary folder"

        def flow_of(least):
            return lambda flow: counting(flow, Lost("/data", None, None, WORDS, None, "lost"), lambda row: row["v"] > least)

        _, found = verdicts(flow_of(1), flow_of(2))
        assert reasons(found) == "new workers can't continue its source: a temporary folder"
        assert not verdicts(flow_of(1), flow_of(1))[1].changed_stages

    def test_table_of_a_lookup_from_another_source_needs_a_restart(self):
        def flow_of(path, how="left"):
            return lambda flow: flow.read(ef.from_items(ROWS)).lookup(ef.read_parquet(path), on="k", how=how).write(discard())

        assert verdicts(flow_of("/names"), flow_of("/names", "inner"))[0] == {"lookup": "settings"}
        changed, found = verdicts(flow_of("/names"), flow_of("/others"))
        assert changed == {"lookup": "restart"}
        assert reasons(found) == "its table is read from another source"


class TestSinks:
    @pytest.mark.parametrize(
        ("old", "new", "verdict"),
        [
            pytest.param(lambda: ef.print("a"), lambda: ef.print("b"), "settings", id="what is printed"),
            pytest.param(lambda: ef.to_callback(lambda row: 1), lambda: ef.to_callback(lambda row: 2), "code", id="a callback"),
            pytest.param(lambda: ef.to_function(lambda rows: 1), lambda: ef.to_function(lambda rows: 2), "restart", id="a function"),
            pytest.param(lambda: ef.to_list([]), lambda: ef.to_list([1]), None, id="a list"),
            pytest.param(lambda: ef.write_csv("/out"), lambda: ef.write_csv("/out", delimiter=";"), "restart", id="a delimiter"),
            pytest.param(lambda: ef.write_csv("/out"), lambda: ef.write_csv("/out", roll_after="1m"), "settings", id="when files end"),
            pytest.param(lambda: ef.write_sql("sqlite:////a.db", "t"), lambda: ef.write_sql("sqlite:////a.db", "t"), None, id="a table"),
            pytest.param(lambda: ef.write_sql("sqlite:////a.db", "t"), lambda: ef.write_sql("sqlite:////a.db", "u"), "restart", id="table"),
            pytest.param(
                lambda: ef.write_sql("sqlite:////a.db", "t", mode="upsert", key="k"),
                lambda: ef.write_sql("sqlite:////a.db", "t", mode="upsert", key="v"),
                "restart",
                id="the key of a table",
            ),
        ],
    )
    def test_sink(self, old, new, verdict):
        def flow_of(sink):
            return lambda flow: flow.read(ef.from_items(ROWS)).write(sink())

        name = old().name
        assert verdicts(flow_of(old), flow_of(new))[0] == ({} if verdict is None else {name: verdict})

    @pytest.mark.parametrize(
        ("options", "verdict"),
        [
            ({}, None),
            ({"format": "arrow"}, "settings"),
            ({"headers": {"from": "k"}}, "settings"),
            ({"key": "k"}, "restart"),
            ({"partitioner": "crc32"}, "restart"),
            ({"guarantee": "at_least_once"}, "restart"),
            ({"bootstrap": "other:9092"}, "restart"),
            ({"topic": "views"}, "restart"),
        ],
    )
    def test_kafka_sink_may_change_what_its_writers_stage(self, options, verdict):
        pytest.importorskip("confluent_kafka")

        def flow_of(**changed):
            given = {"topic": "clicks", "bootstrap": "here:9092", **changed}
            return lambda flow: flow.read(ef.from_items(ROWS)).write(ef.write_kafka(given.pop("topic"), **given))

        assert verdicts(flow_of(), flow_of(**options))[0] == ({} if verdict is None else {"write_kafka": verdict})

    def test_kafka_sink_that_sends_at_once_may_change_keys_too(self):
        pytest.importorskip("confluent_kafka")

        def flow_of(**changed):
            sink = ef.write_kafka("clicks", bootstrap="here:9092", guarantee="at_least_once", **changed)
            return lambda flow: flow.read(ef.from_items(ROWS)).write(sink)

        assert verdicts(flow_of(), flow_of(key="k", partitioner="crc32"))[0] == {"write_kafka": "settings"}


class TestGraphs:
    def test_operators_without_names_are_matched_by_their_order(self):
        def flow_of(*numbers):
            def build(flow):
                rows = flow.read(ef.from_items(ROWS))
                for number in numbers:
                    rows = rows.map(lambda row, number=number: row | {"v": number})
                rows.write(discard())

            return build

        assert verdicts(flow_of(1, 2), flow_of(1, 2))[0] == {}
        assert verdicts(flow_of(1, 2), flow_of(1, 3))[0] == {"map_2": "code"}
        assert verdicts(flow_of(1, 2), flow_of(0, 1, 2))[0] == {"map": "code", "map_2": "code", "map_3": "restart"}

    def test_operator_that_reads_the_other_branch_needs_a_restart(self):
        def flow_of(place):
            def build(flow):
                branches = flow.read(ef.from_items(ROWS)).branch(lambda row: row["v"] > 1)
                branches[place].map(lambda row: row).named("read").write(discard())
                branches[1 - place].filter(lambda row: True).named("other").write(discard())

            return build

        _, found = verdicts(flow_of(0), flow_of(1))
        assert "it read `branch` and reads `branch`.false" in reasons(found)

    def test_join_of_two_inputs_is_compared_by_its_state(self):
        def flow_of(*, swapped=False, within="1m", how="inner", suffix="_right"):
            def build(flow):
                left = flow.read(ef.from_items([{"k": 1, "t": 0}], event_time="t", name="left"))
                right = flow.read(ef.from_items([{"k": 1, "t": 0}], event_time="t", name="right"))
                one, two = (right, left) if swapped else (left, right)
                one.key_by("k").join(two.key_by("k"), within=ef.between("-1m", within), how=how, suffix=suffix).write(discard())

            return build

        assert verdicts(flow_of(), flow_of())[0] == {}
        assert verdicts(flow_of(), flow_of(suffix="_other"))[0] == {"join": "settings"}
        assert verdicts(flow_of(), flow_of(how="left"))[0] == {"join": "restart"}
        assert verdicts(flow_of(), flow_of(within="2m"))[0] == {"join": "restart"}
        assert verdicts(flow_of(), flow_of(swapped=True))[1].needs_restart

    def test_event_times_that_are_assigned_in_another_way_need_a_restart(self):
        def flow_of(function):
            return lambda flow: flow.read(ef.from_items(ROWS)).with_time(function).write(discard())

        changed, found = verdicts(flow_of(lambda row: row["v"]), flow_of(lambda row: row["w"]))
        assert changed == {"with_time": "restart"}
        assert "the windows behind it" in reasons(found)

    def test_ttl_of_keys_belongs_to_their_state(self):
        def flow_of(ttl):
            source = ef.from_items([{"k": "a", "t": 0}], event_time="t")
            return lambda flow: flow.read(source).deduplicate("k", ttl=ttl).write(discard())

        assert verdicts(flow_of("1h"), flow_of("60m"))[0] == {}
        changed, found = verdicts(flow_of("1h"), flow_of("2h"))
        assert changed == {"deduplicate": "restart"}
        assert "the saved state is of ttl 3600 s, the operator's of ttl 7200 s" in reasons(found)

    def test_plan_without_identities_is_compared_by_its_operators(self):
        from evenflow.engine.plan.planner import plan as planned

        def flow_of(least):
            flow = ef.Dataflow("flow")
            counting(flow, condition=lambda row: row["v"] > least)
            return planned(flow.graph)

        found = compare(flow_of(1), flow_of(2))
        assert [change.operator for change in found.operators if change.verdict == "code"] == ["filter"]
