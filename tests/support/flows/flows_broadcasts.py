"""Flows with broadcast streams, for simulated runs: their results don't depend on when a broadcast row meets a row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from disordered import disordered, source

import evenflow as ef

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


RULE = {"name": "string", "part": "int64", "over": "int64", "at": "int64"}


class Judged(ef.KeyedFunction):
    """Emits, for each row, the rules when the watermark has passed the row: those that are earlier have all arrived."""

    seen = ef.map_state()

    def __init__(self, *, by_time: bool = False, in_order: bool = False) -> None:
        self.by_time, self.in_order = by_time, in_order

    def on_row(self, key, row, context):
        self.seen[row["seq"]] = row["ts"]
        context.timer(context.time)

    def on_timer(self, key, time, context):
        for seq in [seq for seq, ts in self.seen.items() if EPOCH + timedelta(milliseconds=ts) == time]:
            ts = self.seen.pop(seq)
            rules = [(name, rule) for name, rule in context.broadcast.items() if not self.by_time or rule["at"] < ts]
            names = [str(name) for name, _ in rules]
            total = sum(rule["over"] for _, rule in rules)
            yield {"seq": seq, "rules": " ".join(names if self.in_order else sorted(names)), "total": total}


class NeverBack(ef.KeyedFunction):
    """Passes rows on, and fails if a key's rows see an older broadcast row than one before."""

    newest = ef.value_state()

    def on_row(self, key, row, context):
        rule = context.broadcast.get("all")
        version = -1 if rule is None else rule["version"]
        if self.newest is not None and version < self.newest:
            raise ValueError(f"version {version} came behind {self.newest}")
        self.newest = version
        yield {"seq": row["seq"], "key": key}


class Counted(ef.KeyedFunction):
    """Emits the number of rules once all have arrived."""

    def on_row(self, key, row, context):
        context.timer(EPOCH + timedelta(minutes=1))

    def on_timer(self, key, time, context):
        yield {"key": key, "rules": len(context.broadcast)}


def named_rules() -> list[dict[str, Any]]:
    """Return rules that replace one another, and are deleted and come back; all are earlier than the rows of `disordered`."""
    return [{"name": f"rule {i % 7}", "part": i % 2, "over": i if i % 5 else None, "at": i * 100} for i in range(60)]


def replaced_and_deleted() -> ef.Dataflow:
    flow = ef.Dataflow("replaced")
    rules = flow.read(ef.from_items(named_rules(), event_time="at", name="rules")).parallelism(1, fixed=True)
    newest = rules.broadcast("name", "part", delete=ef.col("over").is_null())
    flow.read(source()).key_by("key").process(Judged(in_order=True), newest).write(ef.to_list([]))
    return flow


def rules_all_the_time() -> ef.Dataflow:
    """Read rules that arrive among the rows, in any order; every row counts those before it. Two operators read them."""
    flow = ef.Dataflow("always")
    rows = [{"id": row["seq"], "over": row["price"], "at": row["ts"]} for row in disordered(40, seed=8)]
    rules = flow.read(ef.from_items(rows, event_time="at", max_delay="500ms", name="rules")).key_by("id").broadcast()
    read = flow.read(source())
    read.key_by("key").process(Judged(by_time=True), rules).write(ef.to_list([], name="by_key"))
    read.key_by("lane").process(Judged(by_time=True), rules).named("lanes").write(ef.to_list([], name="by_lane"))
    return flow


def versions_never_go_back() -> ef.Dataflow:
    """Read rules without event time, which hold no timer back."""
    flow = ef.Dataflow("versions")
    rules = flow.read(ef.from_items([{"name": "all", "version": n} for n in range(60)], name="rules")).parallelism(1, fixed=True)
    flow.read(source()).key_by("key").process(NeverBack(), rules.broadcast("name")).write(ef.to_list([]))
    return flow


def from_several_workers() -> ef.Dataflow:
    """Read rows of one key from several workers, so that nothing but the broadcast puts them in an order; no result depends on it."""
    flow = ef.Dataflow("several")
    rules = flow.read(ef.from_items([{"name": f"rule {i % 3}", "at": i} for i in range(40)], event_time="at", name="rules"))
    moved = rules.map(lambda row: {**row, "by": row["at"] % 4})
    flow.read(source()).key_by("key").process(Counted(), moved.broadcast("name")).write(ef.to_list([]))
    return flow


def newest_by_version() -> ef.Dataflow:
    """Read rules whose rows overtake one another, with a column that tells which of a key's rows is the newest."""
    flow = ef.Dataflow("versioned")
    rules = flow.read(ef.from_items(named_rules(), event_time="at", name="rules"))
    moved = rules.map(lambda row: {**row, "half": row["over"] and row["over"] / 2}, schema={**RULE, "half": "float64"})
    newest = moved.broadcast("name", "part", delete=ef.col("over").is_null(), version="at")
    flow.read(source()).key_by("key").process(Judged(), newest).write(ef.to_list([]))
    return flow


FLOWS = (replaced_and_deleted, rules_all_the_time, versions_never_go_back, from_several_workers, newest_by_version)
IN_ORDER = {replaced_and_deleted, versions_never_go_back}
"""The flows that rely on the order of the rules: a split that moves to another source worker would change it."""
