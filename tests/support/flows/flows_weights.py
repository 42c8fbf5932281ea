"""Flows of aggregates over aggregates: chains at random, and those whose rows move from group to group."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import evenflow as ef

Build = Callable[[ef.Stream], ef.Stream]


def changing(numbers: Random, rows: int = 70) -> Any:
    """Return a source of rows of few users who change places; amounts are eighths, so that sums of floats are exact in any order."""
    made = [
        {
            "at": at - numbers.randrange(3),
            "user": numbers.randrange(6),
            "place": numbers.choice("abc"),
            "cents": numbers.choice((None, *range(-3, 9))),
            "amount": numbers.choice((None, 0.125, -2.5, 4.0, 1e9, 7.0)),
        }
        for at in range(3, 3 + rows)
    ]
    return ef.from_items(made, event_time="at", max_delay="1s")


FIRST: dict[str, Callable[[], Any]] = {
    "count": ef.count,
    "sum": lambda: ef.sum("cents"),
    "most": lambda: ef.max("cents"),
    "least": lambda: ef.min("amount"),
    "last": lambda: ef.last("place"),
    "kinds": lambda: ef.count_distinct("cents"),
    "middle": lambda: ef.median("cents"),
    "total": lambda: ef.sum("amount", where=ef.col("cents") > 0),
}
NUMBERS = ("count", "sum", "most", "least", "kinds", "middle", "total")
GROUPS = ("count", "most", "last", "kinds")
"""Results that change a row's group when the next aggregate is keyed by them."""


def functions_of(numbers: Random, column: str) -> dict[str, Any]:
    """Return some aggregates that can take rows back."""
    possible: dict[str, Any] = {
        "sum": ef.sum(column),
        "mean": ef.mean(column),
        "variance": ef.variance(column),
        "spread": ef.stddev(column),
        "known": ef.count(column),
        "some": ef.count(where=ef.col(column) > 2),
        "least": ef.min(column),
        "most": ef.max(column),
        "kinds": ef.count_distinct(column),
        "middle": ef.median(column),
        "best": ef.top(2, by=column, columns=[column]),
        "above": ef.sum(column, where=ef.col(column) > 1),
    }
    chosen = numbers.sample(sorted(possible), numbers.randrange(1, 4))
    return {"count": ef.count(), **{name: possible[name] for name in chosen}}


def between(numbers: Random, column: str) -> Build:
    """Return one of the operators that pass weights on, or none."""
    limit = numbers.randrange(-2, 6)

    def large(row: dict[str, Any]) -> bool:
        return row[column] is None or row[column] > limit

    return numbers.choice(
        (
            lambda stream: stream,
            lambda stream: stream.filter(ef.col(column) > limit),
            lambda stream: stream.filter(large),
            lambda stream: stream.map(lambda row: {**row, "more": 1}),
            lambda stream: stream.flat_map(lambda row: [row] * (1 + large(row))),
            lambda stream: stream.rename(**{column: "renamed"}).rename(renamed=column),
            lambda stream: stream.cast({column: "float64"}),
            lambda stream: stream.union(stream.filter(ef.col(column) > limit)),
        )
    )


def chain(seed: int) -> ef.Dataflow:
    """Return two or three aggregates, each over the results of the one before; other readers may take the updates as they are."""
    numbers = Random(seed)
    flow = ef.Dataflow("chain")
    keys = numbers.choice((("user",), ("user", "place"), ("place",)))
    chosen = {"count", numbers.choice(GROUPS), numbers.choice(NUMBERS)}
    updates = flow.read(changing(numbers)).key_by(*keys).aggregate(**{name: FIRST[name]() for name in sorted(chosen)}).named("first")
    if numbers.random() < 0.3:
        updates.write(ef.to_list([], name="updates"))
    depth = numbers.randrange(1, 3)
    for level in range(depth):
        column = numbers.choice(sorted(name for name in chosen if name not in ("last", "best")))
        stream = between(numbers, column)(updates)
        groups = sorted((chosen & set(GROUPS)) | (set(keys) - {"user"}))
        keys = tuple(numbers.sample(groups, 1))
        if numbers.random() < 0.2:
            by = f"by_{level}"
            keyed, keys = stream.key_by(lambda row, name=keys[0]: None if row[name] == "a" else len(str(row[name])), column=by), (by,)
        else:
            keyed = stream.key_by(*keys)
        functions = functions_of(numbers, column)
        if "count" in keys:
            functions["rows"] = functions["count"]
        functions = {name: function for name, function in functions.items() if name not in keys}
        ends = level == depth - 1
        updates = keyed.aggregate(**functions, emit="final" if ends else "update").named(f"over_{level}")
        chosen = set(functions)
    updates.write(ef.to_list([], name="results"))
    return flow


def users_by_place() -> ef.Dataflow:
    """Count the users by the place where they were last, then the places by their number of users."""
    flow = ef.Dataflow("places")
    users = flow.read(changing(Random(7), 120)).key_by("user").aggregate(place=ef.last("place"), cents=ef.sum("cents"))
    places = users.named("users").key_by("place").aggregate(users=ef.count(), cents=ef.sum("cents"), mean=ef.mean("cents"))
    places.named("places").key_by("users").aggregate(places=ef.count(), cents=ef.sum("cents"), emit="final").write(ef.to_list([]))
    return flow


def counted_users() -> ef.Dataflow:
    """Count the users by the place where they were last, as updates: a place that all users left has a row with nothing."""
    flow = ef.Dataflow("counted")
    users = flow.read(changing(Random(3), 50)).key_by("user").aggregate(place=ef.last("place"), cents=ef.max("cents"))
    users.key_by("place").aggregate(users=ef.count(), cents=ef.sum("cents"), most=ef.max("cents")).write(ef.to_list([]))
    return flow


def logged_users() -> ef.Dataflow:
    """Count the users by place as a changelog, whose inserts minus its deletes are the users of a place at the end."""

    def change(row: dict[str, Any]) -> dict[str, Any]:
        return {"place": row["place"], "users": row["users"] if row["op"] == "insert" else -row["users"]}

    flow = ef.Dataflow("logged")
    users = flow.read(changing(Random(11), 60)).key_by("user").aggregate(place=ef.last("place"))
    changes = users.key_by("place").aggregate(users=ef.count()).changelog().map(change)
    changes.key_by("place").aggregate(users=ef.sum("users"), emit="final").write(ef.to_list([]))
    return flow
