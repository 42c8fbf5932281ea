"""Results on Ray equal those of the local runtime."""

from __future__ import annotations

import pytest
from comparing import in_order

import evenflow as ef


def windows(flow):
    """Build tumbling and sliding windows of a disordered stream, with aggregates that are combined and one that can't be."""
    rows = flow.read(ef.generate(total=30_000, keys=50, zipf=1.1, max_delay="2s", event_rate=1000, string_keys=True))
    keyed = rows.key_by("key")
    return [
        keyed.window(ef.tumbling("5s")).aggregate(n=ef.count(), total=ef.sum("value"), last=ef.max("seq")),
        keyed.window(ef.sliding("10s", every="5s")).aggregate(distinct=ef.approx_distinct("seq")),
    ]


def states(flow):
    """Build state per key, by record and by column, and running aggregates; one source worker keeps the order within a key."""

    def running(state, row):
        n = (state or 0) + 1
        return n, {"key": row["key"], "seq": row["seq"], "n": n} if n % 10 == 0 else None

    def totals(state, rows):
        total = rows.running_sum("value", state["total"])
        return {"total": rows.last(total)}, {"key": rows["key"], "seq": rows["seq"], "total": total}

    rows = flow.read(ef.generate(total=20_000, keys=300)).parallelism(1)
    keyed = rows.key_by("key")
    by_rest = rows.map(lambda row: {**row, "even": row["seq"] % 2 == 0}).key_by(lambda row: row["seq"] % 7, column="rest")
    return [
        keyed.stateful_map(running),
        keyed.stateful_map_columns(totals, state={"total": "float64"}),
        by_rest.aggregate(n=ef.count(), mean=ef.mean("value"), first=ef.min("seq"), emit="final"),
    ]


def unions(flow):
    """Build a union of two sources that is split in two again; the source's own rows continue too."""
    one = flow.read(ef.from_items([{"word": word, "n": n} for n, word in enumerate(["to", "be", "or", "not", "to", "be"])])).named("words")
    two = flow.read(ef.from_items([{"word": "be", "n": n} for n in range(100)])).named("bees")
    both = one.union(two)
    return [
        both.filter(lambda row: row["n"] % 2 == 0).key_by("word").aggregate(n=ef.count(), emit="final"),
        both.flat_map(lambda row: [row["word"]] * (row["n"] % 3)),
        one,
    ]


@pytest.mark.first
@pytest.mark.parametrize(("build", "parallelism"), [(windows, 3), (states, 2), (unions, 1)])
def test_results_on_ray_equal_those_of_the_local_runtime(build, parallelism):
    results = {}
    for runtime in ("local", "ray"):
        flow = ef.Dataflow(build.__name__)
        results[runtime] = [[] for _ in range(3)]
        for stream, rows in zip(build(flow), results[runtime], strict=False):
            stream.write(ef.to_list(rows))
        flow.run(runtime=runtime, parallelism=parallelism).wait("60s")
    assert sum(map(len, results["ray"])) > 0
    for ray_rows, local_rows in zip(results["ray"], results["local"], strict=True):
        assert in_order(ray_rows) == in_order(local_rows)
