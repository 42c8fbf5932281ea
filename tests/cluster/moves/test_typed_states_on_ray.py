"""States of a declared type on Ray: while workers join and are killed, objects keep all that was added to them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import make_dataclass

import numpy as np
import pytest
from watching import await_rows, kill

import evenflow as ef
from evenflow.scheduler.protocol.reports import ScalingState

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is


def build():
    """Return a flow that counts the rows of each key in an object, its rows, and its results."""
    row_class = make_dataclass("Row", [("seq", int)], frozen=True)  # inside, so that they travel to workers, which don't find this module
    past = make_dataclass("Past", [("totals", np.ndarray), ("newest", tuple[row_class, ...], ())], slots=True)

    def remember(state, row):
        state = state or past(np.zeros(2))
        state.totals[1] += 1
        state.newest = (row_class(row["seq"]), *state.newest)[:3]
        seen = [each.seq for each in state.newest]
        return state, {"key": row["key"], "n": int(state.totals[1]), "ordered": seen == sorted(seen, reverse=True)}

    flow, read, results = ef.Dataflow("pasts"), [], []
    rows = flow.read(ef.generate(rate=200, every="50ms", keys=20, string_keys=True)).parallelism(1)
    rows.write(ef.to_list(read, name="to_read"))
    rows.key_by("key").stateful_map(remember, state=past).named("pasts").write(ef.to_list(results, name="to_pasts"))
    return flow, read, results


def test_objects_keep_what_was_added_while_workers_join_leave_and_are_killed(tmp_path):
    flow, read, results = build()
    config = ef.JobConfig(
        parallelism=1,
        key_groups=16,
        checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="500ms"),
        restart=ef.RestartConfig(delay="10ms", most=1_000),
    )
    job = flow.run(runtime="ray", config=config)

    try:
        await_rows(job, results, 50)
        for workers, killed in ((3, "pasts-2"), (2, "pasts-0")):
            assert job.scale("pasts", workers).state is ScalingState.DONE
            await_rows(job, results, 50)
            kill(job, killed)
            await_rows(job, results, 50)
        value = job.read("pasts", results[0]["key"])
        assert value["newest"][0].keys() == {"seq"}
        assert value["totals"].dtype == np.float64
        job.stop(drain=True)
        job.wait("60s")
    finally:
        with suppress(ef.JobError):  # it has ended
            job.cancel()
    counts: dict[str, int] = {}
    for row in read:
        counts[row["key"]] = counts.get(row["key"], 0) + 1
    assert sorted((row["key"], row["n"]) for row in results) == sorted((key, n + 1) for key, most in counts.items() for n in range(most))
    assert all(row["ordered"] for row in results)
