"""Flows that are written wrongly: refused when they are built or started, before any row is read, with what to do."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import evenflow as ef

TABLE = pa.table({"k": ["a", "a"], "n": [1, 2], "l": [[1], [2]]})
HOURS = ef.tumbling("1h")


def rows(flow=None):
    return (flow or ef.Dataflow("wrong")).read(ef.from_items([{"k": "a", "v": 1}]))


def started(build, **options):
    flow = ef.Dataflow("wrong")
    build(flow)
    flow.run(runtime="local", **options)


def written_twice():
    stream, sink = rows(), ef.to_list([])
    stream.write(sink)
    stream.map(lambda row: row).write(sink)


WRONG = {
    # Streams
    "no source": (lambda: started(lambda flow: None), "the flow `wrong` is empty: begin with flow.read(...)"),
    "no sink": (lambda: started(rows), "the output of operator `from_items` goes nowhere: end the stream with .write(...)"),
    "a path for a source": (lambda: ef.Dataflow("a").read("in.csv"), "read('in.csv'): expected a source, for example"),
    "a path for a sink": (lambda: rows().write("out/"), ".write('out/'): expected a sink, for example"),
    "a list for a sink": (lambda: rows().write([]), ".write([]): expected a sink"),
    "a tuple to write to": (lambda: ef.to_list(()), "the target is a tuple; give the list"),
    "a sink for two streams": (written_twice, "sink `to_list` is written twice: make another"),
    "a union of two flows": (lambda: rows().union(rows(ef.Dataflow("other"))), "union of streams of two flows, `wrong` and `other`"),
    "a union with a list": (lambda: rows().union([rows()]), "expected streams, for example a.union(b, c)"),
    "a union with keys": (lambda: rows().union(rows().key_by("k")), "expected streams"),
    "two operators of one name": (
        lambda: rows().map(dict).named("a").map(dict).named("a"), "two operators of the flow `wrong` are named `a`: choose another",
    ),
    "a name with a blank": (lambda: rows().map(dict).named("my map"), "operator name 'my map': use letters, digits"),
    "a flow without a name": (lambda: ef.Dataflow(None), "dataflow name None: use letters"),
    "dead letters that go nowhere": (
        lambda: started(lambda flow: rows(flow).map(dict, on_error="dead_letter").write(ef.to_list([]))), "dead letters of operator `map`",
    ),
    "dead letters of an operator that has none": (lambda: rows().map(dict).dead_letters, 'give it on_error="dead_letter"'),
    "another on_error": (lambda: rows().map(dict, on_error="ignore"), "map(on_error='ignore'): expected \"stop\", \"skip\""),
    "on_error of an aggregate": (lambda: rows().key_by("k").aggregate(on_error="skip"), "aggregate has no on_error"),
    # Event time
    "with_time of no column": (lambda: rows().with_time(""), "with_time(''): expected the name of a column, or a function of (row)"),
    "with_time of a number": (lambda: rows().with_time(5), "with_time(5): expected a function of (row)"),
    "with_time of another unit": (lambda: rows().with_time("v", unit="h"), "with_time: event time unit 'h' is unknown: use \"s\", \"ms\""),
    "with_time of no delay": (lambda: rows().with_time("v", max_delay="late"), "with_time(max_delay=...) 'late' is not a duration"),
    "with_time that ignores": (lambda: rows().with_time("v", on_error="ignore"), "with_time(on_error='ignore'): expected \"stop\""),
    # Lookups
    "lookup in no table": (lambda: rows().lookup([1], on="k"), "lookup(list): expected a pyarrow Table or RecordBatch, a pandas or Polars"),
    "refresh of a table": (lambda: rows().lookup(TABLE, on="k", refresh="5m"), "lookup(refresh='5m'): a Table can't be read again: give"),
    "refresh at once": (lambda: rows().lookup(lambda: TABLE, on="k", refresh=0), "lookup(refresh=0): expected a duration above 0"),
    "refresh by a word": (lambda: rows().lookup(lambda: TABLE, on="k", refresh="often"), "lookup(refresh='often'): "),
    "lookup in a class": (lambda: rows().lookup(dict, on="k"), "lookup(type): expected a pyarrow Table"),
    "lookup by a column that the table hasn't": (lambda: rows().lookup(TABLE, on="v"), "the table has no column `v`; there are: k, n, l"),
    "lookup of a column that the table hasn't": (lambda: rows().lookup(TABLE, on="k", columns=["m"]), "the table has no column `m`"),
    "lookup by lists": (lambda: rows().lookup(TABLE, on="l"), "lookup: this key can't be hashed: a value of type list<item: int64>"),
    "lookup by no column": (lambda: rows().lookup(TABLE, on=[]), "lookup(on=...)(): give the names of columns"),
    "lookup by a number": (lambda: rows().lookup(TABLE, on=3), "lookup(on=3): expected a column, a list of columns, or a dict"),
    "lookup from all sides": (lambda: rows().lookup(TABLE, on="k", how="outer"), "lookup(how='outer'): expected \"left\" or \"inner\""),
    "lookup of text": (lambda: rows().lookup(TABLE, on="k", columns="n"), "lookup(columns='n'): expected a list of column names"),
    "lookup without a suffix": (lambda: rows().lookup(TABLE, on="k", suffix=""), "lookup(suffix=''): expected text"),
    "lookup in a table with repeated keys": (
        lambda: rows().lookup(TABLE, on="k", unique=True), "lookup: unique=True, and the table has several rows with {'k': 'a'}",
    ),
    "lookup in a table with a name twice": (
        lambda: rows().lookup(pa.table([[1], [2]], names=["k", "k"]), on="k"), "two of its columns have the name `k`",
    ),
    # Columns and keys
    "deduplicate by nothing": (lambda: rows().deduplicate(), "deduplicate(): give the names of columns, at least one"),
    "deduplicate by a list": (lambda: rows().key_by("k").deduplicate(["v"]), "deduplicate(['v'],): give the names of columns"),
    "deduplicate by a column twice": (lambda: rows().deduplicate("k", "k"), "deduplicate('k', 'k'): give each column once"),
    "deduplicate for no time": (lambda: rows().deduplicate("k", ttl=0), "deduplicate(ttl=0): must be longer than zero"),
    "deduplicate for no duration": (lambda: rows().deduplicate("k", ttl="soon"), "deduplicate(ttl=...) 'soon' is not a duration"),
    "no columns": (lambda: rows().select(), "select(): give the names of columns"),
    "a list of columns": (lambda: rows().select(["k"]), "select(['k'],): give the names of columns"),
    "a number for a column": (lambda: rows().rename(v=3), "rename('v', 3): give the names of columns"),
    "no key": (lambda: rows().key_by(), "key_by needs at least one column, or a function"),
    "a list of keys": (lambda: rows().key_by(["k"]), "key_by(['k'],): give column names, each once, or one function"),
    "a key twice": (lambda: rows().key_by("k", "k"), "give column names, each once"),
    "no aggregates": (lambda: rows().key_by("k").aggregate(), "aggregate() needs at least one aggregate, for example n=ef.count()"),
    "an aggregate of a key's name": (lambda: rows().key_by("k").aggregate(k=ef.count()), "`k` is a column of the result already; choose"),
    "an aggregate named as a window's end": (
        lambda: rows().key_by("k").window(HOURS).aggregate(window_end=ef.max("v")), "`window_end` is a column of the result already",
    ),
    "an aggregate of no name": (lambda: ef.sum(3), 'sum takes the name of a column, as in sum("delay"); got 3'),
    "a quantile of 2": (lambda: ef.approx_quantile("v", 2), "`q` must be a number from 0 to 1, got 2"),
    "another emission": (lambda: rows().key_by("k").aggregate(emit="end", n=ef.count()), "emit='end'): expected \"update\" or \"final\""),
    "state of no type": (
        lambda: rows().key_by("k").stateful_map_columns(lambda state, rows: (state, None), state={"n": "number"}), "state={'n': 'number'}",
    ),
    "text for a list of columns": (
        lambda: rows().key_by("k").stateful_map_columns(lambda state, rows: (state, None), state={"n": "int64"}, columns="v"), "='v'",
    ),
    "a schema of a Python type that no column has": (
        lambda: rows().map(dict, schema={"v": list}), "`map`: column `v`: list is no type", "list<int64>",
    ),
    "a schema of text": (lambda: rows().map(dict, schema="int64"), "`map`: schema is 'int64'", "give a dict of types by column"),
    # Durations and windows
    "text for windows": (lambda: rows().key_by("k").window("1h"), ".window('1h'): expected windows, for example ef.tumbling(\"1h\")"),
    "windows of '1 hour'": (lambda: ef.tumbling("1 hour"), "window size '1 hour' is not a duration: write \"500ms\""),
    "windows of '5x'": (lambda: ef.tumbling("5x"), "window size '5x' is not a duration"),
    "windows of -1": (lambda: ef.tumbling(-1), "window size -1 is not a duration"),
    "windows of True": (lambda: ef.tumbling(True), "window size True is not a duration"),
    "windows of infinity": (lambda: ef.tumbling(float("inf")), "window size inf is not a duration"),
    "windows of nothing": (lambda: ef.tumbling(None), "window size None is not a duration"),
    "windows of zero": (lambda: ef.tumbling(0), "must be longer than zero"),
    "windows of all time": (lambda: ef.tumbling(timedelta.max), "is longer than 10,000 years"),
    "windows with gaps": (lambda: ef.sliding("1m", every="1h"), "would leave gaps between them"),
    "windows at every microsecond": (
        lambda: ef.sliding("3650d", every="1us"), "'3650d' every '1us' would have 315,360,000,000,000 panes of 1 us", "the most is 100,000",
    ),
    "windows that share a microsecond": (lambda: ef.sliding("1h", every="3599.999999s"), "would have 3,600,000,000 panes of 1 us each"),
    "a state that lives for ever so long": (lambda: ef.value_state(ttl="always"), "ttl 'always' is not a duration"),
    "a delay that is none": (lambda: ef.from_items([{"t": 1}], event_time="t", max_delay="soon"), "max_delay 'soon' is not a duration"),
    "times of hours": (lambda: ef.from_items([{"t": 1}], event_time="t", unit="h"), "unit 'h' is unknown: use \"s\", \"ms\""),
    # Workers and settings
    "no workers": (lambda: rows().parallelism(0), "operator `from_items`: parallelism 0 must be a whole number of at least 1"),
    "text for workers": (lambda: rows().parallelism("2"), "parallelism '2' must be a whole number"),
    "True for workers": (lambda: rows().parallelism(True), "parallelism True must be a whole number"),
    "bounds upside down": (lambda: rows().parallelism(between=(4, 1)), "no number of workers is at least 4 and at most 1"),
    "resources below zero": (lambda: rows().resources(gpus=-1), "operator `from_items`: resources(gpus=-1 must be a number of at least 0)"),
    "one and a half GPUs": (lambda: rows().resources(gpus=1.5), "gpus=1.5: Ray reserves whole numbers above 1"),
    "memory without a unit": (lambda: rows().resources(memory="4"), "memory='4' must be a number of bytes, or a text such as '4GB'"),
    "a GPU among custom resources": (lambda: rows().resources(custom={"GPU": 1}), "'GPU' is a resource of Ray's own: use cpus=, gpus="),
    "a custom resource without an amount": (lambda: rows().resources(custom=["tpu"]), "custom=['tpu'] must be amounts by the names"),
    "settings as a dict": (lambda: started(rows, config={"parallelism": 2}), "config={'parallelism': 2}: expected ef.JobConfig(...)"),
    "another runtime": (lambda: ef.Dataflow("a").run(runtime="spark"), "runtime='spark': expected \"ray\" or \"local\""),
    "a detached job of this process": (
        lambda: started(lambda flow: rows(flow).write(ef.to_callback(print)), detached=True), 'detached=True is for runtime="ray"',
    ),
    "a page of a job of this process": (
        lambda: started(lambda flow: rows(flow).write(ef.to_callback(print)), ui=True), 'ui=True shows jobs of runtime="ray"',
    ),
    # Sources and sinks
    "rows at no rate": (lambda: ef.generate(rate=0), "rate is 0; it must be above 0"),
    "rows at a rate of text": (lambda: ef.generate(rate="fast"), "rate is 'fast'; it must be above 0"),
    "half a key": (lambda: ef.generate(keys=2.5), "keys is 2.5; it must be a whole number"),
    "rows after the year 9999": (lambda: ef.generate(start_time=2**62), "they must be in the years 1 to 9999"),
    "Spark without a place": (lambda: ef.to_spark(), "choose the destination of the rows: path=, table= or foreach_batch="),
    "a function of one argument for Spark's batches": (
        lambda: ef.to_spark(foreach_batch=lambda df: None), "to_spark(foreach_batch=...)", "is called with (df, batch_id)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_flow_is_refused_with_what_to_do(refused, name):
    program, *said = WRONG[name]
    error = refused(program)
    assert isinstance(error, ef.FlowError)
    for part in said:
        assert part in str(error)


SETTINGS = [
    (lambda: ef.JobConfig(parallelism="2"), "parallelism is '2'; expected a whole number"),
    (lambda: ef.JobConfig(key_groups=3), "key_groups is 3; expected a power of two"),
    (lambda: ef.JobConfig(combine="no"), "combine is 'no'; expected True or False"),
    (lambda: ef.JobConfig(checkpoint="/folder"), "checkpoint is '/folder'; expected ef.CheckpointConfig(...)"),
    (lambda: ef.JobConfig(migration_strategy="teleport"), "migration_strategy is 'teleport'; expected one of"),
    (lambda: ef.JobConfig(migration_strategy="restart"), "it needs CheckpointConfig(dir=...)"),
    (
        lambda: ef.JobConfig(autoscale=ef.AutoscaleConfig("ds2"), metrics=ef.MetricsConfig(enabled=False)),
        "decides by what the workers measure: leave MetricsConfig(enabled=True)",
    ),
    (lambda: ef.CheckpointConfig(interval="x"), "CheckpointConfig: interval 'x' is not a duration"),
    (lambda: ef.CheckpointConfig(interval=0), "CheckpointConfig: interval must be longer than zero"),
    (lambda: ef.CheckpointConfig(5), "CheckpointConfig: dir is 5; expected a folder or a URL"),
    (lambda: ef.CheckpointConfig(""), "CheckpointConfig: dir is ''; expected a folder or a URL"),
    (lambda: ef.CheckpointConfig(tolerable_failures=-1), "tolerable_failures is -1"),
    (lambda: ef.RestartConfig("always"), "strategy is 'always'; expected one of exponential, fixed, none"),
    (lambda: ef.RestartConfig(most=-1), "most is -1; expected a whole number of at least 0"),
    (lambda: ef.BalanceConfig("fair"), "'fair' can't balance a job: use hotspot"),
    (lambda: ef.BalanceConfig(threshold="x"), "threshold is 'x'; expected a number"),
    (lambda: ef.BalanceConfig(least_busy=2), "least_busy is 2; expected a part"),
    (lambda: ef.BalanceConfig(max_bytes="1G"), "max_bytes is '1G'; expected 0 or more"),
    (lambda: ef.AutoscaleConfig("magic"), "'magic' can't scale a job: use ds2"),
    (lambda: ef.AutoscaleConfig("pid"), 'keeps a latency: say which, for example AutoscaleConfig("pid", latency_target='),
    (lambda: ef.AutoscaleConfig(ef.Ds2), "expected a name, or a policy such as ef.Ds2()"),
    (lambda: ef.AutoscaleConfig(ef.Ds2(min_change=0)), "Ds2: min_change is 0; expected a whole number of at least 1"),
    (lambda: ef.AutoscaleConfig(min_parallelism=5, max_parallelism=2), "max_parallelism is 2, below min_parallelism, which is 5"),
    (lambda: ef.StateConfig("disk"), 'StateConfig: backend is \'disk\': use "memory", "lmdb"'),
    (lambda: ef.WorkerConfig(placement="anywhere"), "placement is 'anywhere'; expected one of spread, pack"),
    (lambda: ef.WorkerConfig(cpus="1"), "cpus is '1'; expected a number"),
    (lambda: ef.MetricsConfig(port=99_999), "port is 99999; expected a whole number from 0 to 65535"),
    (lambda: ef.MetricsConfig(host=""), "host is ''; expected an address or the name of a host"),
    (lambda: ef.MetricsConfig(token="a b"), "MetricsConfig: token is not what a header can carry"),
    (lambda: ef.MetricsConfig(token=""), "MetricsConfig: token is not what a header can carry"),
    (lambda: ef.MetricsConfig(key="tls.key"), "MetricsConfig: key needs certificate="),
    (lambda: ef.MetricsConfig(discovery="s3://bucket/targets"), "discovery is 's3://bucket/targets'; expected a path"),
]


@pytest.mark.parametrize(("make", "said"), SETTINGS, ids=[said for _, said in SETTINGS])
def test_wrong_setting_is_refused_with_what_is_expected(make, said):
    with pytest.raises(ef.FlowError) as caught:
        make()
    assert said in str(caught.value)


def test_checkpoint_folder_that_is_a_file_is_refused(refused, tmp_path):
    (tmp_path / "file").touch()
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "file")))
    error = refused(lambda: started(lambda flow: rows(flow).write(ef.to_list([])), config=config))
    assert "/file') is a file: give a folder" in str(error)


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_a_folder_that_is_no_savepoint_is_named(refused, tmp_path, place):
    error = refused(lambda: started(lambda flow: rows(flow).write(ef.to_list([])), from_savepoint=tmp_path / place))
    assert "job `wrong` can't begin from " in str(error)
    assert "manifest is gone" in str(error)


def test_folder_that_is_not_empty_is_named_with_the_choices(refused, tmp_path):
    (tmp_path / "part-0.parquet").touch()
    error = refused(lambda: started(lambda flow: rows(flow).write(ef.write_parquet(tmp_path))))
    assert "is not empty; choose another folder, or say overwrite=True or append=True" in str(error)
