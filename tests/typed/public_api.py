"""Uses every public name as a user does. `mypy --strict` checks it, and a test finds missing names. Nothing here is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, assert_type

import pyarrow as pa

import evenflow as ef


class Longest(ef.Aggregate):
    """The longest word."""

    def create(self) -> str:
        return ""

    def add(self, accumulator: str, row: dict[str, Any]) -> str:
        return max(accumulator, str(row["word"]), key=len)

    def merge(self, a: str, b: str) -> str:
        return max(a, b, key=len)

    def finish(self, accumulator: str) -> str:
        return accumulator


class Sessions(ef.KeyedFunction):
    """Counts the rows that arrive within a minute."""

    state_version = 2
    rows = ef.value_state(0, ttl="1h", renamed_from="count")
    seen = ef.list_state(renamed_from="rows_seen")
    by_kind = ef.map_state(renamed_from="kinds")

    def migrate_state(self, version: int, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "rows": version}

    def open(self, context: ef.FunctionContext) -> None:
        self.rejected = context.counter("rejected")
        context.gauge(f"{context.operator}_{context.index}").set(context.parallelism)
        context.histogram("seconds", bounds=(0.1, 1)).observe(0.5)

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> None:
        self.rows += 1
        self.rejected.add(1)
        context.timer(context.time)
        due: datetime = context.timer_after("10m")
        if context.timer("1m") < context.now or due < context.now or context.time_domain == "processing":
            context.cancel(due, time_domain="processing")


class Answered(ef.CoKeyedFunction):
    """Pairs calls with their answers."""

    asked = ef.value_state()

    def on_left(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> None:
        self.asked = row

    def on_right(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> list[Any]:
        return [row, self.asked]


class Numbers(ef.Source):
    """A source of the user's own."""

    name = "numbers"

    def reader(self, index: int, parallelism: int, position: Any = None) -> ef.SourceReader:
        raise NotImplementedError


class Nowhere(ef.Sink):
    """A sink of the user's own."""

    name = "nowhere"

    def writer(self, index: int, parallelism: int) -> ef.SinkWriter:
        return NowhereWriter()


class NowhereWriter(ef.SinkWriter):
    """The sink's writer."""

    def write(self, batch: ef.Batch) -> None:
        assert_type(batch.rows, pa.RecordBatch)

    def prepare(self, checkpoint: int) -> list[Any]:
        return []


def yields(partition: int, position: Any) -> Iterator[Any]:
    """Yield a partition that can be resumed."""
    yield {"ts": partition}, position


def sources(spark: Any) -> Sequence[ef.Source]:
    return [
        ef.read_csv("in/", event_time="ts"),
        ef.read_delta("table", version=3, event_time="ts"),
        ef.read_iceberg("shop.counts", catalog="prod", options={"type": "rest"}, snapshot=7, event_time="ts"),
        ef.read_iceberg("shop.counts", follow=True, poll_every="2s", skip_changes=True),
        ef.read_json("in/"),
        ef.read_kafka(["clicks", "views"], bootstrap="localhost:9092", start={("clicks", 0): 5}, until="now", columns=["key"]),
        ef.read_kafka("shop.orders", bootstrap="localhost:9092", format="debezium", key=["id"], schema={"id": "int64"}),
        ef.read_kafka("shop.orders", bootstrap="localhost:9092", format="debezium", key="id", registry="http://localhost:8081"),
        ef.read_kafka("clicks", bootstrap="localhost:9092", format="avro", schema={"type": "string"}, registry="http://localhost:8081"),
        ef.read_delta("counts", follow=True, poll_every="2s", skip_changes=True),
        ef.read_parquet("in/"),
        ef.read_csv("in/", event_time="ts", compression="gzip"),
        ef.read_json("in/", follow="lines"),
        ef.read_parquet("in/", follow=True, poll_every="2s", max_age="1d", schema={"ts": "int64"}, event_time="ts", idle_after="1m"),
        ef.read_text("in/"),
        ef.from_generator(yields, partitions=3, event_time="ts", idle_after="1m", schema={"ts": "int64"}),
        ef.from_items([{"word": "a"}]),
        ef.from_spark(spark),
        ef.generate(total=10),
        ef.nexmark("bid", events=1_000, out_of_order_group_size=100),
    ]


def sinks(spark: Any, rows: list[dict[str, Any]]) -> Sequence[ef.Sink]:
    return [
        ef.write_csv("out/", partition_by="day"),
        ef.write_json("out/", roll_after=60),
        ef.write_parquet("s3://bucket/out", partition_by=("region", "day"), roll_bytes=1 << 30, roll_after="5m"),
        ef.write_kafka("out", bootstrap="localhost:9092", key=["user", "day"], headers={"trace": "trace"}, options={"linger.ms": 50}),
        ef.write_kafka("out", bootstrap="localhost:9092", mode="upsert", key="user"),
        ef.write_kafka("out", bootstrap="localhost:9092", format="avro", schema='{"type": "string"}', registry="http://localhost:8081"),
        ef.write_sql("sqlite:///shop.db", "orders", mode="upsert", key=["user"], version="n"),
        ef.write_delta("counts"),
        ef.write_iceberg("shop.counts", catalog="prod", options={"type": "rest"}),
        ef.to_list(rows),
        ef.to_callback(rows.append),
        ef.to_function(len, commit=print),
        ef.to_spark(spark, path="out/"),
        ef.print(),
        Nowhere(),
    ]


def longest_visit(key: Any, window: ef.Window, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Summarise a whole window."""
    yield {"word": key, "seconds": (window.end - window.start).total_seconds(), "rows": len(rows)}


def flow(source: ef.Source, sink: ef.Sink) -> ef.Dataflow:
    """Build a flow with every kind of stream."""
    flow = ef.Dataflow("everything")
    stream = flow.read(source)
    assert_type(stream, ef.Stream)
    keyed = stream.filter(lambda row: bool(row["word"])).key_by("word")
    assert_type(keyed, ef.KeyedStream)
    assert_type(keyed.map(lambda row: row).rename(word="token").deduplicate(), ef.KeyedStream)
    assert_type(stream.cast({"n": pa.int64()}, word="string").rename(word="token"), ef.Stream)
    assert_type(stream.branch(lambda row: bool(row["word"])), tuple[ef.Stream, ef.Stream])
    assert_type(stream.lookup(source, on="word", refresh="5m"), ef.Stream)
    assert_type(stream.with_time("ts", max_delay="1s").lookup(source, on="word").with_arrival_time(), ef.Stream)
    windows = keyed.window(ef.tumbling("1h"))
    keyed.window(ef.tumbling("10s", time="processing")).aggregate(n=ef.count()).write(sink)
    assert_type(windows, ef.WindowedStream)
    keyed.window(ef.sliding("1h", every="5m")).aggregate(n=ef.count()).write(sink)
    small = ef.step("small", ef.col("n") < 10, times=(1, None), repeats="next")
    matches = keyed.pattern(
        [small, ef.step("big", lambda row, matched: bool(row["n"] > len(matched["small"])))], within="10m", skip="past_last"
    )
    matches.late.write(sink)
    assert_type(matches.filter(lambda row: bool(row["big"])), ef.Stream)
    others = flow.read(source).key_by("word")
    joined = keyed.join(others, ef.between("-5m", "5m"), how="left")
    assert_type(joined, ef.JoinResults)
    joined.late_left.union(joined.late_right).write(sink)
    keyed.join(others, ef.always("1d")).write(sink)
    keyed.join_asof(others, max_age="1h").write(sink)
    stream.window(ef.tumbling("1h")).aggregate(n=ef.count()).write(sink)
    keyed.window(ef.session("10m", time="processing")).process(longest_visit, on_error="skip").write(sink)
    keyed.window(ef.rows(10_000, every=1_000)).aggregate(middle=ef.median("n")).write(sink)
    keyed.window(ef.session("10m")).aggregate(
        distinct=ef.count_distinct("n", where="kept"),
        middle=ef.median("n"),
        tenth=ef.quantile("n", 0.1),
        best=ef.top(3, by="n"),
        dearest=ef.max_by("word", "n"),
        cheapest=ef.min_by("word", "n"),
        spread=ef.variance("n"),
        deviation=ef.stddev("n"),
        words=ef.collect("word"),
    ).explode("best", position="rank").changelog("change").write(sink)
    windows.aggregate(
        total=ef.sum("n"),
        least=ef.min("n"),
        most=ef.max("n"),
        mean=ef.mean("n"),
        first=ef.first("n"),
        last=ef.last("n"),
        words=ef.approx_distinct("word"),
        median=ef.approx_quantile("n", 0.5),
        longest=Longest(),
    ).late.write(sink)
    assert_type(ef.sql("SELECT n FROM words", ttl="1h", functions={"twice": (abs, int)}, words=stream), ef.Stream)
    total = ef.col("n") * 2 + 1
    assert_type(total, ef.Expression)
    assert_type(ef.when(total > 3).then(ef.lit("many")).when(total == 3).then("some").otherwise(None), ef.Expression)
    assert_type(ef.col("word").str.slice(0, 3).str.upper().is_in(["A"]) & ~ef.col("at").dt.truncate("1h").is_null(), ef.Expression)
    computed = stream.with_columns({"a b": total}, first=ef.col("words").list.get(0), x=ef.col("who").struct.field("x").cast("int64"))
    assert_type(computed.filter(total.between(1, 5)).select("word", total=total), ef.Stream)
    assert_type(keyed.with_columns(total=total).select("word", least=-total.abs()), ef.KeyedStream)
    keyed.aggregate(total=ef.sum(total, where=total > 3), best=ef.top(2, by=total), dearest=ef.max_by("word", total)).write(sink)
    windows.aggregate(n=ef.count(where=ef.col("n") > 0), emit="update", every="1m", lateness="10m").late.write(sink)
    keyed.process(Sessions()).write(sink)
    rules = stream.broadcast("word", delete=ef.col("n") == 0).named("rules")
    assert_type(rules, ef.BroadcastStream)
    assert_type(keyed.process(Sessions(), keyed.broadcast(), on_error="skip"), ef.Stream)
    both = keyed.co_group(stream.key_by("other"), ef.session("1m"), lambda key, window, left, right: [{"n": len(left) + len(right)}])
    assert_type(both, ef.JoinResults)
    keyed.co_process(stream.key_by("other"), Answered(), on_error="skip").write(sink)
    return flow


def settings() -> ef.JobConfig:
    """Return every group of settings."""
    return ef.JobConfig(
        parallelism=2,
        checkpoint=ef.CheckpointConfig("/shared/checkpoints", interval="30s"),
        state=ef.StateConfig("lmdb"),
        restart=ef.RestartConfig("fixed", delay="1s"),
        balance=ef.BalanceConfig("hotspot"),
        autoscale=ef.AutoscaleConfig(ef.Ds2(min_change=2), max_parallelism=8, max_change=2, catch_up="1m"),
        network=ef.NetworkConfig(linger="1ms"),
        metrics=ef.MetricsConfig(window="500ms", samples=False, host="0.0.0.0", token="secret", discovery="/var/lib/evenflow"),
        worker=ef.WorkerConfig(cpus=0.5),
    )


def policies() -> tuple[ef.AutoscaleConfig, ...]:
    """Return every scaling policy."""
    return (
        ef.AutoscaleConfig("ds2"),
        ef.AutoscaleConfig(ef.Dhalion(blacklist="5m")),
        ef.AutoscaleConfig(ef.ThresholdPolicy(scale_down_delay=30)),
        ef.AutoscaleConfig(ef.QueueingPolicy(processors=12)),
        ef.AutoscaleConfig(ef.PidPolicy(band=0.2), latency_target="200ms"),
        ef.AutoscaleConfig(ef.LatencyPolicy(slowest=2), latency_target="200ms"),
        ef.AutoscaleConfig(ef.Stela(slots=2)),
    )


def steer(job: ef.Job) -> ef.JobState:
    """Call every method of a job."""
    assert_type(job.status(), ef.JobStatus)
    assert_type(job.metrics(), list[ef.WorkerFigures])
    assert_type(job.load("count"), ef.OperatorLoad)
    assert_type(job.snapshot("count"), ef.LoadSnapshot)
    assert_type(job.read("count", ("JFK", 7), timeout="5s"), Any)
    assert_type(job.rebalance("count"), ef.MigrationReport)
    assert_type(job.split("join", "key", to=[1, 2], dealt="right"), ef.MigrationReport)
    assert_type(job.unsplit("join", "key"), ef.MigrationReport)
    assert_type(job.scale("count", 4), ef.ScalingReport)
    assert_type(job.scale_out(), ef.NodeScalingReport)
    assert_type(job.plan_upgrade(ef.Dataflow("shop")), ef.UpgradePlan)
    assert_type(job.upgrade(ef.Dataflow("shop"), canary=0.1, watch="1m"), ef.UpgradeReport | None)
    assert_type(job.upgrades(), list[ef.UpgradeReport])
    assert_type(job.upgrades()[0].state, ef.UpgradeState)
    assert_type(job.scale_in(policy="round_robin"), tuple[ef.NodeScalingReport, ...])
    job.autoscaler("ds2")
    job.autoscaler(ef.Ds2(activation_window=3), mode="advise")
    checkpoint, balance, autoscale = ef.CheckpointConfig(interval="5s"), ef.BalanceConfig("hotspot"), ef.AutoscaleConfig("ds2")
    changes = job.reconfigure(checkpoint=checkpoint, balance=balance, autoscale=autoscale, restart=ef.RestartConfig(most=3))
    assert_type(changes, list[ef.SettingChange])
    job.reconfigure(migration_strategy="fluid", linger="2ms", log_level="debug")
    job.reconfigure(parallelism=3)  # type: ignore[arg-type]
    assert_type((changes[0].setting, changes[0].before, changes[0].after), tuple[str, Any, Any])
    assert_type(job.decisions(), list[ef.DecisionRecord])
    assert_type(job.plot("count"), ef.Picture)
    job.show(every="2s", timeout="1m")
    report = job.checkpoint()
    assert_type(report, ef.CheckpointReport)
    for each in (report, job.migrations()[0], job.scalings()[0], job.node_scalings()[0]):
        assert_type((each.number, each.reason, each.began_at), tuple[int, str, float | None])
        assert_type((each.over, each.seconds, each.problem), tuple[bool, float | None, str | None])
    assert_type(report.state, ef.CheckpointState)
    assert_type(ef.read_savepoint(job.savepoint("/saved")), ef.SavedJob)
    assert_type(job.stop(savepoint="/saved", timeout="5m"), None)
    assert_type(ef.list_checkpoints("/saved", "shop"), list[ef.SavedCheckpoint])
    assert_type(ef.latest_checkpoint("/saved", "shop"), str | None)
    assert_type(ef.secret("env:PG_PASSWORD"), str)
    return ef.connect("everything").status().state


def handled(job: ef.Job) -> str:
    """Handle every error."""
    try:
        job.wait("1h")
    except ef.RecordError as error:
        return f"{error.operator}: {error.record}"
    except (ef.StateBackendError, ef.CorruptStateError, ef.StateError) as error:
        return f"state: {error}"
    except (ef.FlowError, ef.SnapshotError) as error:
        return f"the program: {error}"
    except (ef.ConnectorError, ef.ClusterError) as error:
        return f"outside: {error}"
    except ef.UpgradeRolledBackError as error:
        return f"the new code: {error}"
    except (ef.JobBusyError, ef.JobNotRunningError, ef.RequestError) as error:
        return f"later: {error}"
    except (ef.JobLostError, ef.JobFailedError) as error:
        return f"again: {error}"
    except (ef.JobTimeoutError, ef.JobError) as error:
        return f"patience: {error}"
    except (ef.ProtocolError, ef.EvenflowError) as error:
        return f"a bug: {error}"
    return "done"
