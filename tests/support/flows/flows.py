"""Flows that simulated runs share: every operator with keyed state, and most of the others, over a few disordered rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from disordered import source

import evenflow as ef
from evenflow.testing import in_order

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND, MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
LATE = EPOCH + 20 * SECOND


def tumbling_windows() -> ef.Dataflow:
    flow = ef.Dataflow("tumbling")
    windows = flow.read(source()).key_by("key").window(ef.tumbling("1s"))
    windows.aggregate(
        n=ef.count(), known=ef.count("value"), total=ef.sum("value"), mean=ef.mean("price"), low=ef.min("value"), high=ef.max("price"),
        first=ef.first("seq"), last=ef.last("value"),
    ).write(ef.to_list([]))  # fmt: skip
    return flow


def sliding_windows() -> ef.Dataflow:
    flow = ef.Dataflow("sliding")
    rows = flow.read(ef.generate(total=40, keys=4, zipf=1.0, string_keys=True, event_rate=10.0, max_delay="700ms"))
    rows.key_by("key").window(ef.sliding("2s", every="500ms")).aggregate(n=ef.count(), total=ef.sum("value")).write(ef.to_list([]))
    return flow


def windows_of_windows() -> ef.Dataflow:
    flow = ef.Dataflow("twice")
    small = flow.read(source()).key_by("key", "half").window(ef.tumbling("500ms")).aggregate(n=ef.count(), total=ef.sum("price"))
    large = small.key_by("key").window(ef.sliding("3s", every="1s", offset="200ms"))
    large.aggregate(n=ef.sum("n"), parts=ef.count(), most=ef.max("total")).write(ef.to_list([]))
    return flow


def running_updates() -> ef.Dataflow:
    flow = ef.Dataflow("updates")
    rows = flow.read(source()).key_by("key")
    counts = rows.aggregate(n=ef.count(), known=ef.count("value"), low=ef.min("value"), high=ef.max("value"), total=ef.sum("value"))
    counts.write(ef.to_list([]))
    return flow


def running_finals() -> ef.Dataflow:
    flow = ef.Dataflow("finals")
    totals = flow.read(source()).key_by("half", "key").aggregate(emit="final", n=ef.count(), mean=ef.mean("value"), last=ef.last("seq"))
    totals.key_by("half").aggregate(emit="final", n=ef.sum("n"), keys=ef.approx_distinct("key")).write(ef.to_list([], name="halves"))
    totals.write(ef.to_list([], name="totals"))
    return flow


def stateful_map_in_order() -> ef.Dataflow:
    def running(state: Any, row: dict[str, Any]) -> Any:
        seen, total = state if state is not None else (0, 0.0)
        if row["seq"] < seen:
            raise ValueError(f"{row['seq']} came behind {seen}")
        total += row["price"]
        forgets = row["seq"] % 5 == 4
        return None if forgets else (row["seq"], total), {"seq": row["seq"], "total": total}

    flow = ef.Dataflow("running")
    flow.read(source()).key_by("lane").stateful_map(running).write(ef.to_list([]))
    return flow


def rows_in_order() -> ef.Dataflow:
    flow = ef.Dataflow("ordered")
    flow.read(source()).key_by("key").stateful_map(in_order("seq", lanes=12)).write(ef.to_list([]))
    return flow


def rows_of_partitions() -> ef.Dataflow:
    """Return a flow whose rows have an order within each of a source's splits, whichever worker reads it."""

    def numbers(partition: int, position: int | None) -> Any:
        for n in range(position or 0, 40):
            yield {"partition": partition, "n": n}, n + 1

    flow = ef.Dataflow("partitions")
    rows = flow.read(ef.from_generator(numbers, partitions=6))
    rows.key_by("partition").stateful_map(in_order("n")).write(ef.to_list([]))
    return flow


def stateful_map_columns() -> ef.Dataflow:
    def running(state: dict[str, Any], rows: Any) -> Any:
        count, total = rows.running_count(state["n"]), rows.running_sum("price", state["total"])
        return {"n": rows.last(count), "total": rows.last(total)}, rows.where(rows["seq"] % 3 != 0, n=count, total=total)

    flow = ef.Dataflow("columns")
    rows, state = flow.read(source()).key_by("lane"), {"n": "int64", "total": "float64"}
    rows.stateful_map_columns(running, state=state, columns=("lane", "seq", "price")).write(ef.to_list([]))
    return flow


class Seconds(ef.KeyedFunction):
    """Sums per second by timers, where one timer may set the next; rows after a timer don't count in it."""

    prices = ef.map_state()
    rows = ef.value_state(default=0)

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        second = context.time.replace(microsecond=0)
        self.prices[second] = [*self.prices.get(second, []), row["price"]]
        self.rows += 1
        context.timer(second + SECOND)
        context.timer(second + 3 * SECOND)
        if row["seq"] % 7 == 0:
            context.timer(context.time + 5 * SECOND)
            context.cancel(context.time + 5 * SECOND)

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Any:
        prices = self.prices.pop(time - SECOND, None)
        if prices is None:
            yield {"key": key, "time": time, "n": 0, "price": 0.0}
        else:
            yield {"key": key, "time": time, "n": len(prices), "price": sum(sorted(prices))}
        if (time - EPOCH) % (2 * SECOND) == timedelta(0) and time < EPOCH + 20 * SECOND:
            context.timer(time + 2.5 * SECOND)


def timers_of_a_key() -> ef.Dataflow:
    flow = ef.Dataflow("timers")
    flow.read(source()).key_by("key").process(Seconds()).write(ef.to_list([]))
    return flow


class Recent(ef.KeyedFunction):
    """The part of a lane's past that is within the lifetime of its states."""

    count = ef.value_state(default=0, ttl="1200ms")
    seen = ef.list_state(ttl="2s")
    halves = ef.map_state(ttl="3s")
    total = ef.value_state()

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        self.count += 1
        self.seen.append(row["seq"])
        if row["half"] is not None:
            self.halves[str(row["half"])] = row["seq"]
        self.total = (self.total or 0.0) + row["price"]
        yield {"seq": row["seq"], "count": self.count, "seen": list(self.seen), "halves": len(self.halves), "total": self.total}
        if row["seq"] % 11 == 0:
            del self.total
            self.seen.clear()


def states_that_expire() -> ef.Dataflow:
    flow = ef.Dataflow("recent")
    flow.read(source()).key_by("lane").process(Recent()).write(ef.to_list([]))
    return flow


def union_and_branches() -> ef.Dataflow:
    flow = ef.Dataflow("branches")
    left = flow.read(source()).named("left").select("key", "value", "seq")
    right = flow.read(source(rows=20, seed=6)).named("right").parallelism(1).select("key", "value", "seq")
    types = {"key": "string", "value": "int64", "seq": "int64"}
    both = left.union(right.map(lambda row: {**row, "seq": row["seq"] + 1000}, schema=types), left.filter(ef.col("value") > 0))
    both.filter(lambda row: row["seq"] % 2 == 0).rename(seq="place").drop("value").write(ef.to_list([], name="even"))
    both.key_by("key").aggregate(n=ef.count(), total=ef.sum("value"), emit="final").write(ef.to_list([], name="totals"))
    words = both.flat_map(lambda row: [{"n": row["seq"], "part": i} for i in range(row["seq"] % 3)])
    words.write(ef.to_list([], name="parts"))
    words.key_by("part").aggregate(n=ef.count()).write(ef.to_list([], name="part_counts"))
    return flow


def many_widths() -> ef.Dataflow:
    flow = ef.Dataflow("widths")
    rows = flow.read(source()).parallelism(3).map(lambda row: row | {"twice": row["seq"] * 2}).parallelism(1)
    doubled = rows.map_batches(lambda batch: batch.append_column("thrice", pc.multiply(batch["seq"], 3))).parallelism(4)
    keyed = doubled.key_by(lambda row: row["key"] and row["key"].upper(), column="upper")
    keyed.window(ef.tumbling("2s")).aggregate(n=ef.count(), high=ef.max("thrice")).parallelism(2).write(ef.to_list([], name="windows"))
    doubled.select("twice", "thrice").write(ef.to_list([], name="rows"))
    return flow


class Longest(ef.Aggregate):
    """The largest price and its sequence number, as text."""

    output_type = "string"

    def create(self) -> Any:
        return (-1.0, -1)

    def add(self, accumulator: Any, row: dict[str, Any]) -> Any:
        return max(tuple(accumulator), (row["price"], row["seq"]))

    def merge(self, a: Any, b: Any) -> Any:
        return max(tuple(a), tuple(b))

    def finish(self, accumulator: Any) -> str:
        return f"{accumulator[0]} at {accumulator[1]}"


def own_aggregates_and_sketches() -> ef.Dataflow:
    flow = ef.Dataflow("own")
    keyed = flow.read(source()).key_by("key")
    keyed.window(ef.tumbling("2s")).aggregate(best=Longest(), distinct=ef.approx_distinct("seq"), q=ef.approx_quantile("price", 0.5)).write(
        ef.to_list([], name="windows")
    )
    keyed.aggregate(best=Longest(), emit="final").write(ef.to_list([], name="all"))
    return flow


def null_keys_made_by_a_map() -> ef.Dataflow:
    """Make null keys: a worker may see only nulls for long, and then doesn't know the key's type."""
    flow = ef.Dataflow("nulls")

    def forget(row: dict[str, Any]) -> dict[str, Any]:
        early = row["seq"] <= 30
        return {"key": None if early else row["key"], "half": row["half"] if early else None, "seq": row["seq"]}

    rows = flow.read(source()).map(forget)
    rows.key_by("key").aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="totals"))
    rows.key_by("key").aggregate(n=ef.count()).write(ef.to_list([], name="updates"))
    rows.key_by("half", "key").aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="pairs"))
    windows = rows.key_by("key").window(ef.sliding("2s", every="1s"))
    windows.aggregate(n=ef.count(), last=ef.max("seq")).write(ef.to_list([], name="windows"))
    return flow


def types_that_come_late() -> ef.Dataflow:
    """Make late types: a worker may see only nulls of a column for long, and then doesn't know its type; another knows it
    earlier.
    """
    flow = ef.Dataflow("types")

    def vague(batch: pa.RecordBatch) -> pa.RecordBatch:
        late = pc.greater(batch["seq"], 20)
        value = pc.if_else(late, batch["value"], pa.scalar(None, pa.int64()))
        value = pa.nulls(len(value)) if value.null_count == len(value) else value
        return pa.record_batch({"key": batch["key"], "seq": batch["seq"], "value": value})

    keyed = flow.read(source()).map_batches(vague).key_by("key")
    functions = {
        "n": ef.count(), "known": ef.count("value"), "total": ef.sum("value"), "mean": ef.mean("value"), "low": ef.min("value"),
        "high": ef.max("value"), "distinct": ef.approx_distinct("value"),
    }  # fmt: skip
    keyed.aggregate(**functions, emit="final").write(ef.to_list([], name="totals"))
    keyed.aggregate(**functions).write(ef.to_list([], name="updates"))
    windows = keyed.window(ef.sliding("2s", every="1s"))
    windows.aggregate(**functions, first=ef.first("value"), last=ef.last("value")).write(ef.to_list([], name="windows"))
    return flow


def refused(row: dict[str, Any], remainder: int) -> dict[str, Any]:
    """Return the row, or raise for poison."""
    if row["seq"] % 7 == remainder:
        raise ValueError(f"{row['seq']} is poison")
    return row


def poison_without_state() -> ef.Dataflow:
    """Make every operator that calls a user's function on rows drop some."""

    def twice(row: dict[str, Any]) -> dict[str, Any]:
        return {"seq": row["seq"], "twice": "much" if row["seq"] % 5 == 3 else refused(row, 1)["seq"] * 2}

    def thrice(batch: pa.RecordBatch) -> pa.RecordBatch:
        for row in batch.to_pylist():
            refused(row, 4)
        return batch.select(["seq"]).append_column("thrice", pc.multiply(batch["seq"], 3))

    flow = ef.Dataflow("poison")
    rows = flow.read(source()).filter(lambda row: refused(row, 0)["seq"] != 1, on_error="dead_letter").named("filter")
    rows.dead_letters.write(ef.to_list([], name="filter_letters"))
    batches = rows.map_batches(thrice, on_error="dead_letter").write(ef.to_list([], name="thrice"))
    batches.dead_letters.write(ef.to_list([], name="thrice_letters"))
    parsed = rows.map(twice, schema={"seq": "int64", "twice": "int64"}, on_error="skip").write(ef.to_list([], name="twice"))
    parts = parsed.flat_map(lambda row: [{"n": refused(row, 2)["seq"]}] * (row["seq"] % 3), on_error="dead_letter")
    parts.write(ef.to_list([], name="parts"))
    parts.dead_letters.key_by("message").aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="messages"))
    return flow


class Brittle(ef.KeyedFunction):
    """It changes all that it has before it refuses a row or a timer."""

    seen = ef.list_state()
    total = ef.value_state(default=0.0, ttl="4s")

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        self.total += row["price"]
        self.seen.append(row["seq"])
        context.timer(LATE + row["seq"] * MICROSECOND)
        context.cancel(LATE + (row["seq"] - 12) * MICROSECOND)
        yield {"seq": row["seq"], "seen": list(self.seen), "total": self.total}
        refused(row, 3)

    def on_timer(self, key: Any, time: datetime, context: ef.KeyContext) -> Any:
        seq = (time - EPOCH) // MICROSECOND
        self.seen.append(seq)
        yield {"seq": seq, "seen": list(self.seen), "total": 0.0}
        if seq % 3 == 0:
            raise KeyError(seq)


def poison_with_states() -> ef.Dataflow:
    """Check that changes of a key's state are undone when the function then fails on the record."""

    def gather(state: Any, row: dict[str, Any]) -> Any:
        state = state if state is not None else {"seen": [], "total": 0.0}
        state["seen"].append(row["seq"])
        state["total"] += row["price"]
        refused(row, 5)
        result = {"seq": row["seq"], "seen": list(state["seen"]), "total": state["total"]}
        return None if row["seq"] % 11 == 10 else state, result

    def running(state: dict[str, Any], rows: Any) -> Any:
        state["n"] += 1
        if (rows["seq"] % 7 == 6).any():
            raise ValueError("poison")
        count = rows.running_count(state["n"] - 1)
        return {"n": rows.last(count)}, {"seq": rows["seq"], "n": count}

    flow = ef.Dataflow("brittle")
    lanes = flow.read(source()).key_by("lane")
    gathered = lanes.stateful_map(gather, on_error="dead_letter").write(ef.to_list([], name="gathered"))
    gathered.dead_letters.write(ef.to_list([], name="gathered_letters"))
    counted = lanes.stateful_map_columns(running, state={"n": "int64"}, columns=("seq",), on_error="dead_letter")
    counted.write(ef.to_list([], name="counted")).dead_letters.write(ef.to_list([], name="counted_letters"))
    brittle = lanes.process(Brittle(), on_error="dead_letter").write(ef.to_list([], name="brittle"))
    brittle.dead_letters.write(ef.to_list([], name="brittle_letters"))
    return flow


def no_rows() -> ef.Dataflow:
    flow = ef.Dataflow("empty")
    rows = flow.read(ef.from_items([]))
    rows.key_by("item").aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="final"))
    rows.map(lambda row: row).union(rows).write(ef.to_list([], name="rows"))
    return flow


FLOWS = (
    tumbling_windows, sliding_windows, windows_of_windows, running_updates, running_finals, stateful_map_in_order, rows_in_order,
    stateful_map_columns, timers_of_a_key, states_that_expire, union_and_branches, many_widths, own_aggregates_and_sketches,
    null_keys_made_by_a_map, types_that_come_late, poison_without_state, poison_with_states, no_rows,
)  # fmt: skip
