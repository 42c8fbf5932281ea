"""Flows over the changes of a database table at random: with deletions, rows that change their group, and events that come again."""

from __future__ import annotations

from random import Random
from typing import Any

import evenflow as ef
from evenflow.engine.table_changes import DELETED, OFFSET, PARTITION

Row = dict[str, Any]


def changes(seed: int, events: int = 80) -> list[Row]:
    """Return the changes of a table's rows, in two partitions by key; now and then the newest ones of a partition come again."""
    numbers = Random(seed)
    logs: list[list[Row]] = [[], []]
    order: list[Row] = []
    for _ in range(events):
        key = numbers.randrange(8)
        log = logs[key % 2]
        repeated = log[-numbers.randrange(1, 6) :] if log and numbers.random() < 0.1 else []
        deleted = numbers.random() < 0.25
        new: Row = {
            "id": key,
            "place": None if deleted else numbers.choice("abc"),
            "cents": None if deleted else numbers.choice((None, *range(-3, 9))),
            DELETED: deleted,
            PARTITION: key % 2,
        }
        for change in (*repeated, new):
            log.append({**change, OFFSET: len(log)})
            order.append(log[-1])
    return order


def table(flow: ef.Dataflow, seed: int) -> ef.Stream:
    source = ef.from_items(changes(seed))
    source.table_key = ("id",)
    return flow.read(source)


def by_place(seed: int) -> ef.Dataflow:
    """Aggregate the rows of the table by place."""
    flow = ef.Dataflow("by-place")
    aggregates = {
        "rows": ef.count(),
        "cents": ef.sum("cents"),
        "mean": ef.mean("cents"),
        "spread": ef.variance("cents"),
        "least": ef.min("cents"),
        "most": ef.max("cents"),
        "kinds": ef.count_distinct("cents"),
    }
    table(flow, seed).key_by("place").aggregate(**aggregates, emit="final").write(ef.to_list([], name="results"))
    return flow


def logged(seed: int) -> ef.Dataflow:
    """Count each row of the table in its changelog: once for an insert, minus once for a deletion."""

    def change(row: Row) -> Row:
        return {"id": row["id"], "place": row["place"], "cents": row["cents"], "times": 1 if row["op"] == "insert" else -1}

    flow = ef.Dataflow("logged")
    changed = table(flow, seed).filter(ef.col("place") != "c").changelog().map(change)
    changed.key_by("id", "place", "cents").aggregate(times=ef.sum("times"), emit="final").filter(ef.col("times") != 0).write(
        ef.to_list([], name="results")
    )
    return flow


def rows_at_the_end(seed: int) -> list[Row]:
    """Apply the changes to a dict, one after the other."""
    rows: dict[int, Row] = {}
    for change in changes(seed):
        if change[DELETED]:
            rows.pop(change["id"], None)
        else:
            rows[change["id"]] = {name: change[name] for name in ("id", "place", "cents")}
    return list(rows.values())
