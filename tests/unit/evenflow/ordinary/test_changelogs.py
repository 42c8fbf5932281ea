"""A changelog has the rows that are added and taken back: replayed in any order, it gives the present rows."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

MOVES = [("ann", "Rome"), ("bob", "Rome"), ("ann", "Oslo"), ("bob", "Oslo"), ("ann", "Bern"), ("bob", "Rome")]


def cities() -> ef.Stream:
    """Return how many users are in each city, by each user's last one."""
    rows = [{"user": user, "city": city, "at": at} for at, (user, city) in enumerate(MOVES)]
    users = ef.Dataflow("cities").read(ef.from_items(rows)).key_by("user").aggregate(city=ef.max_by("city", "at"))
    return users.key_by("city").aggregate(n=ef.count())


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("workers", [1, 2])
def test_changes_add_up_to_the_present_rows_in_whatever_order(rows, workers):
    out: list[dict[str, Any]] = []
    stream = cities().filter(ef.col("n") < 2)
    stream.changelog("change").write(ef.to_list(out))
    config = ef.JobConfig(network=ef.NetworkConfig(source_rows=rows, linger=0))
    stream.flow.run(runtime="local", parallelism=workers, config=config).wait("30s")
    random.Random(rows).shuffle(out)
    present = Counter[tuple[str, int]]()
    for row in out:
        assert list(row) == ["city", "n", "change"]
        present[row["city"], row["n"]] += {"insert": 1, "delete": -1}[row["change"]]
    assert {row: count for row, count in present.items() if count} == {("Bern", 1): 1, ("Rome", 1): 1}


def test_explain_shows_a_changelog_as_append_only_rows_of_a_stream_read_by_weight():
    stream = cities().changelog()
    stream.write(ef.to_list([]))
    line = next(line for line in stream.flow.explain().splitlines() if line.strip().startswith("changelog"))
    assert " by weight" in line
    assert "append-only" in line


def test_a_changelog_can_be_counted():
    out: list[dict[str, Any]] = []
    stream = cities().changelog()
    stream.key_by("op").aggregate(n=ef.count(), emit="final").write(ef.to_list(out))
    stream.flow.run(runtime="local", config=ef.JobConfig(network=ef.NetworkConfig(source_rows=1))).wait("30s")
    counts = {row["op"]: row["n"] for row in out}
    assert counts["insert"] - counts.get("delete", 0) == 2


def test_streams_that_have_no_known_changes_are_refused():
    with pytest.raises(ef.FlowError, match="is for streams of updates, and this one is append-only"):
        ef.Dataflow("rows").read(ef.from_items([1])).changelog()
    with pytest.raises(ef.FlowError, match="is for streams of updates, and this one is append-only"):
        cities().changelog().changelog("again")
    with pytest.raises(ef.FlowError, match="needs to know which rows were replaced"):
        cities().map_batches(lambda batch: batch).changelog()
    with pytest.raises(ef.FlowError, match="has a column `n` already"):
        cities().changelog("n")
