"""Every public call with arguments of wrong types: it works, or raises one of evenflow's own errors."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import evenflow as ef

WRONG: dict[str, Any] = {
    "None": None,
    "a number": 7,
    "a negative": -1.5,
    "a text": "nonsense!",
    "an empty text": "",
    "bytes": b"x",
    "a list": [object()],
    "a list of lists": [["a", "b"], 3],
    "a dict": {"a": object()},
    "an object": object(),
    "a class": dict,
    "a function": lambda: None,
    "a table": pa.table({"a": [1]}),
}


class Row(NamedTuple):
    k: str
    v: int
    at: int


def rows() -> ef.Stream:
    return ef.Dataflow("wrong").read(ef.from_items([{"k": "a", "v": 1, "at": 0}], event_time="at"))


class Nothing(ef.KeyedFunction):
    def on_row(self, key, row, context):
        return []


class NothingOfTwo(ef.CoKeyedFunction):
    def on_left(self, key, row, context):
        return []

    def on_right(self, key, row, context):
        return []


def keyed() -> ef.KeyedStream:
    return rows().key_by("k")


def two() -> tuple[ef.KeyedStream, ef.KeyedStream]:
    stream = rows()
    return stream.key_by("k"), stream.key_by("k")


def generate_rows(partition, position):
    yield {"a": 1}, 1


def on_left(method: str, *given: Any) -> Callable[..., Any]:
    """Return a function that calls `method` of left; `RIGHT` stands for the stream right."""

    def call(*arguments: Any, **named: Any) -> Any:
        left, right = two()
        return getattr(left, method)(*(right if argument is RIGHT else argument for argument in arguments), **named)

    return call


RIGHT = object()
"""It stands for the right stream of a join."""

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "Dataflow": (ef.Dataflow, ("wrong",), {}),
    "read": (lambda *a, **k: ef.Dataflow("wrong").read(*a, **k), (ef.from_items([1]),), {}),
    "plan": (lambda **k: ended(rows()).plan(**k), (), {"parallelism": 1, "config": ef.JobConfig()}),
    "explain": (lambda **k: ended(rows()).explain(**k), (), {"parallelism": 1, "config": ef.JobConfig()}),
    "run": (
        lambda **k: over(ended(rows()).run(**{"runtime": "local", **k})),
        (),
        {"runtime": "local", "parallelism": 1, "config": ef.JobConfig(), "from_savepoint": None},
    ),
    "from_items": (ef.from_items, ([1],), {"event_time": None, "unit": "ms", "max_delay": 0, "name": "items"}),
    "from_generator": (
        ef.from_generator,
        (generate_rows,),
        {
            "event_time": None,
            "unit": "ms",
            "max_delay": 0,
            "idle_after": None,
            "partitions": 1,
            "schema": None,
            "poll_every": "1s",
            "name": "g",
        },
    ),
    "generate": (ef.generate, (), {"rate": 10, "keys": 3, "zipf": 1.2, "total": 5, "every": "1s", "seed": 1, "event_rate": None}),
    "read_parquet": (
        ef.read_parquet,
        ("in/",),
        {"event_time": None, "unit": "ms", "max_delay": 0, "idle_after": None, "columns": None, "name": "p"},
    ),
    "read_csv": (
        ef.read_csv,
        ("in/",),
        {"event_time": None, "unit": "ms", "max_delay": 0, "idle_after": None, "schema": None, "name": "c"},
    ),
    "read_json": (
        ef.read_json,
        ("in/",),
        {"event_time": None, "unit": "ms", "max_delay": 0, "idle_after": None, "schema": None, "name": "j"},
    ),
    "read_text": (ef.read_text, ("in/",), {"name": "t"}),
    "read_iceberg": (
        ef.read_iceberg,
        ("shop.rows",),
        {"catalog": "c", "options": None, "snapshot": None, "event_time": None, "unit": "ms", "max_delay": 0, "columns": None, "name": "i"},
    ),
    "write_iceberg": (ef.write_iceberg, ("shop.rows",), {"catalog": "c", "options": None, "name": "i"}),
    "to_list": (ef.to_list, ([],), {"name": "l"}),
    "to_callback": (ef.to_callback, (lambda row: None,), {"name": "c"}),
    "map": (lambda *a, **k: rows().map(*a, **k), (lambda row: row,), {"schema": None, "on_error": "stop"}),
    "flat_map": (lambda *a, **k: rows().flat_map(*a, **k), (lambda row: [row],), {"schema": None, "on_error": "stop"}),
    "filter": (lambda *a, **k: rows().filter(*a, **k), (lambda row: True,), {"on_error": "stop"}),
    "branch": (lambda *a, **k: rows().branch(*a, **k), (lambda row: True,), {"on_error": "stop"}),
    "typed": (lambda *a, **k: rows().typed(*a, **k), (Row,), {"on_error": "stop"}),
    "map_batches": (
        lambda *a, **k: rows().map_batches(*a, **k),
        (lambda batch: batch,),
        {"format": "arrow", "batch_size": 1, "timeout": "1s", "event_time": None, "on_error": "stop"},
    ),
    "map_async": (
        lambda *a, **k: rows().map_async(*a, **k),
        (NothingOfTwo.on_left,),
        {"concurrency": 1, "ordered": True, "timeout": "1s", "retries": 0, "backoff": "1s", "schema": None, "on_error": "stop"},
    ),
    "lookup": (
        lambda *a, **k: rows().lookup(*a, **k),
        (pa.table({"k": ["a"], "x": [1]}), "k"),
        {"how": "left", "columns": None, "unique": False, "suffix": "_r", "refresh": None},
    ),
    "with_time": (lambda *a, **k: rows().with_time(*a, **k), ("at",), {"unit": "ms", "max_delay": 0, "on_error": "stop"}),
    "changelog": (lambda *a, **k: keyed().aggregate(n=ef.count()).changelog(*a, **k), ("op",), {}),
    "explode": (lambda *a, **k: rows().map(lambda row: row).explode(*a, **k), ("v",), {"position": None}),
    "with_columns": (lambda *a, **k: rows().with_columns(*a, **k), ({"w": ef.col("v") + 1},), {"total": ef.col("v")}),
    "select of an expression": (lambda *a, **k: rows().select(*a, **k), ("k",), {"total": ef.col("v")}),
    "col": (ef.col, ("v",), {}),
    "lit": (ef.lit, (1,), {}),
    "sql": (lambda *a, **k: ef.sql(*a, **k, t=rows()), ("SELECT v FROM t",), {"ttl": "1d", "functions": {"f": (abs, "int64")}}),
    "when": (lambda *a: ef.when(*a).then(1), (ef.col("v") > 0,), {}),
    "is_in": (ef.col("v").is_in, ([1],), {}),
    "cast of an expression": (ef.col("v").cast, ("int64",), {}),
    "round": (ef.col("v").round, (), {"decimals": 1}),
    "str.contains": (ef.col("k").str.contains, ("a",), {"literal": True}),
    "str.replace": (ef.col("k").str.replace, ("a", "b"), {"literal": True}),
    "str.extract": (ef.col("k").str.extract, ("(a)", 1), {}),
    "str.slice": (ef.col("k").str.slice, (0, 1), {}),
    "str.strip_chars": (ef.col("k").str.strip_chars, ("a",), {}),
    "str.split": (ef.col("k").str.split, ("a",), {}),
    "dt.truncate": (ef.col("at").dt.truncate, ("1h",), {}),
    "dt.epoch": (ef.col("at").dt.epoch, ("ms",), {}),
    "list.get": (ef.col("l").list.get, (0,), {}),
    "list.join": (ef.col("l").list.join, (",",), {}),
    "struct.field": (ef.col("s").struct.field, ("x",), {}),
    "select": (lambda *a: rows().select(*a), ("k", "v"), {}),
    "drop": (lambda *a: rows().drop(*a), ("k", "v"), {}),
    "rename": (lambda *a, **k: rows().rename(*a, **k), ({"k": "x"},), {"v": "y"}),
    "cast": (lambda *a, **k: rows().cast(*a, **k), ({"v": "float64"},), {"at": "int32"}),
    "named": (lambda *a: rows().named(*a), ("x",), {}),
    "parallelism": (lambda *a, **k: rows().parallelism(*a, **k), (1,), {"between": (1, 2), "fixed": False}),
    "write": (lambda *a: rows().write(*a), (ef.to_list([]),), {}),
    "union": (lambda *a: rows().union(*a), (), {}),
    "key_by": (lambda *a, **k: rows().key_by(*a, **k), (lambda row: 1,), {"column": "x"}),
    "window": (lambda *a: rows().window(*a), (ef.tumbling("1m"),), {}),
    "deduplicate": (lambda *a, **k: rows().deduplicate(*a, **k), ("k", "v"), {"ttl": None}),
    "keyed select": (lambda *a: keyed().select(*a), ("k", "v"), {}),
    "keyed drop": (lambda *a: keyed().drop(*a), ("v",), {}),
    "keyed rename": (lambda *a, **k: keyed().rename(*a, **k), ({"k": "x"},), {"v": "y"}),
    "keyed deduplicate": (lambda *a, **k: keyed().deduplicate(*a, **k), ("v",), {"ttl": None}),
    "aggregate": (lambda **k: keyed().aggregate(**k), (), {"emit": "final", "n": ef.count()}),
    "aggregate of a stream": (lambda **k: rows().aggregate(**k), (), {"emit": "final", "n": ef.count()}),
    "window aggregate": (
        lambda **k: keyed().window(ef.tumbling("1m")).aggregate(**k),
        (),
        {"emit": "update", "every": "1s", "lateness": "1s", "n": ef.count()},
    ),
    "window process": (
        lambda *a, **k: keyed().window(ef.tumbling("1m")).process(*a, **k),
        (lambda key, window, rows: [],),
        {"schema": None, "on_error": "stop"},
    ),
    "stateful_map": (lambda *a, **k: keyed().stateful_map(*a, **k), (lambda state, row: (1, row),), {"schema": None, "on_error": "stop"}),
    "stateful_map_columns": (
        lambda *a, **k: keyed().stateful_map_columns(*a, **k),
        (lambda state, rows: (state, None),),
        {"state": {"n": "int64"}, "columns": None, "on_error": "stop"},
    ),
    "process": (lambda *a, **k: keyed().process(*a, **k), (Nothing(), rows().broadcast("k")), {"schema": None, "on_error": "stop"}),
    "broadcast": (lambda *a, **k: rows().broadcast(*a, **k), ("k",), {"delete": ef.col("v") > 0, "version": "v"}),
    "keyed broadcast": (lambda *a, **k: keyed().broadcast(*a, **k), ("k",), {"delete": None}),
    "step": (ef.step, ("a", ef.col("v") > 0), {"times": 2, "contiguity": "next", "repeats": "next", "absent": False}),
    "pattern": (lambda *a, **k: keyed().pattern(*a, **k), ([ef.step("a", ef.col("v") > 0)],), {"within": "1m", "skip": "to_next"}),
    "join": (on_left("join"), (RIGHT, ef.always()), {"how": "inner", "suffix": "_r"}),
    "join_asof": (on_left("join_asof"), (RIGHT,), {"how": "left", "max_age": None, "suffix": "_r"}),
    "co_process": (on_left("co_process"), (RIGHT, NothingOfTwo()), {"schema": None, "on_error": "stop"}),
    "co_group": (
        on_left("co_group"),
        (RIGHT, ef.tumbling("1m"), lambda key, window, left, right: []),
        {"schema": None, "on_error": "stop"},
    ),
    "tumbling": (ef.tumbling, ("1m",), {"offset": 0, "time": "event"}),
    "sliding": (ef.sliding, ("1m",), {"every": "1s", "offset": 0, "time": "event"}),
    "session": (ef.session, ("1m",), {"time": "event"}),
    "rows": (ef.rows, (5,), {"every": 1}),
    "between": (ef.between, (0, "1m"), {}),
    "value_state": (ef.value_state, (), {"default": None, "ttl": None}),
    "list_state": (ef.list_state, (), {"ttl": None}),
    "map_state": (ef.map_state, (), {"ttl": None}),
    "read_savepoint": (ef.read_savepoint, ("nowhere/",), {}),
    "list_checkpoints": (ef.list_checkpoints, ("nowhere/",), {"job": "shop"}),
    "latest_checkpoint": (ef.latest_checkpoint, ("nowhere/", "shop"), {}),
    "secret": (ef.secret, ("env:PG_PASSWORD",), {}),
    **{name: (getattr(ef, name), ("v",), {"where": None}) for name in ("sum", "mean", "variance", "stddev", "min", "max", "first", "last")},
    **{name: (getattr(ef, name), ("v",), {"where": None}) for name in ("collect", "count_distinct", "median", "count")},
    "max_by": (ef.max_by, ("v", "k"), {"where": None}),
    "min_by": (ef.min_by, ("v", "k"), {"where": None}),
    "top": (ef.top, (2, "v"), {"ties": False, "columns": None, "where": None}),
    "quantile": (ef.quantile, ("v", 0.5), {"where": None}),
    "approx_distinct": (ef.approx_distinct, ("v", 0.02), {"where": None}),
    "approx_quantile": (ef.approx_quantile, ("v", 0.5, 0.01), {"where": None}),
    "JobConfig": (ef.JobConfig, (), {"parallelism": 1, "key_groups": 16, "checkpoint": ef.CheckpointConfig(), "state": ef.StateConfig()}),
    "CheckpointConfig": (ef.CheckpointConfig, ("c/",), {"interval": "1s", "kept": 2}),
    "StateConfig": (ef.StateConfig, ("memory",), {"dir": None}),
    "NetworkConfig": (ef.NetworkConfig, (), {"source_rows": 5, "linger": 0}),
}


def ended(stream: ef.Stream) -> ef.Dataflow:
    stream.write(ef.to_list([]))
    return stream.flow


def over(job: ef.Job) -> None:
    """Cancel a job that has started after all, and wait for its end: a thread that follows it must not outlive the test."""
    job.cancel()
    job.wait("60s")


@pytest.mark.parametrize(("call", "arguments", "named"), CALLS.values(), ids=CALLS)
def test_wrong_arguments_are_refused_by_an_error_of_evenflows_own(call, arguments, named, waiting_for_jobs, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    problems = []

    def tried(what: str, *given: Any, **others: Any) -> None:
        try:
            call(*given, **others)
        except ef.EvenflowError as error:
            if not str(error):
                problems.append(f"{what}: an error without a text")
        except Exception as error:  # noqa: BLE001 -- it is the fault that this test looks for
            problems.append(f"{what}: {type(error).__name__}: {error}")

    for name, wrong in WRONG.items():
        for place in range(len(arguments)):
            tried(f"argument {place} is {name}", *arguments[:place], wrong, *arguments[place + 1 :], **named)
        for key in named:
            tried(f"{key}= is {name}", *arguments, **{**named, key: wrong})
    assert not problems, "\n".join(problems)


def test_every_function_that_needs_no_service_is_called():
    elsewhere = {name for name in ef.__all__ if name.startswith(("read_", "write_", "from_", "to_"))} | {
        "connect",
        "always",
        "nexmark",
        "print",
    }
    functions = {name for name in ef.__all__ if inspect.isfunction(getattr(ef, name))}
    assert sorted(functions - elsewhere - set(CALLS)) == []


JOB: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "rebalance": (("counts",), {"policy": "hotspot", "strategy": "all-at-once"}),
    "migrate": (("counts",), {"groups": [1], "to": 0}),
    "read": (("counts", 1), {"timeout": "30s"}),
    "split": (("counts", 1), {"to": [0]}),
    "unsplit": (("counts", 1), {}),
    "scale": (("counts", 1), {}),
    "savepoint": (("saved/",), {"timeout": "1s"}),
    "balancer": (("counts", "hotspot"), {}),
    "autoscaler": (("ds2",), {"mode": "advise"}),
    "load": (("counts",), {}),
}


def test_wrong_arguments_of_a_jobs_methods_are_refused_and_the_job_goes_on(waiting_for_jobs, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    flow, flowing = ef.Dataflow("shop"), threading.Event()
    counts = flow.read(ef.generate(keys=10, rate=2_000)).key_by("key").aggregate(n=ef.count()).named("counts")
    counts.write(ef.to_callback(lambda row: flowing.set()))
    job = flow.run(runtime="local", config=ef.JobConfig(key_groups=16))
    assert flowing.wait(60)
    problems = []
    for method, (arguments, named) in JOB.items():
        for name, wrong in WRONG.items():
            if name == "None":
                continue
            calls = [((*arguments[:place], wrong, *arguments[place + 1 :]), named) for place in range(len(arguments))]
            for given, others in [*calls, *((arguments, {**named, key: wrong}) for key in named)]:
                try:
                    getattr(job, method)(*given, **others)
                except ef.EvenflowError:
                    pass
                except Exception as error:  # noqa: BLE001 -- it is the fault that this test looks for
                    problems.append(f"{method}{given}{others}: {type(error).__name__}: {error}"[:300])
    assert job.status().state.value == "running"
    over(job)
    assert not problems, "\n".join(problems)
