"""NexMark's queries on Ray: keys move and operators scale meanwhile, processes are killed, and the rows equal DuckDB's."""

from __future__ import annotations

import pytest
from patience import patience
from watching import figures_of, until

import evenflow as ef
from evenflow.bench.nexmark import QUERIES, Events
from evenflow.bench.nexmark.check import compare, connect
from evenflow.cli import main

CHOSEN = ("q5", "q7", "q8")
EVENTS, RATE = 1_000_000, 40_000
PATIENCE = patience(240)

pytestmark = pytest.mark.timeout(600)


def test_three_queries_in_one_job_give_duckdbs_rows_while_keys_move_and_operators_scale(tmp_path):
    """The endless stream is stopped after a million events, which are written next to the results."""
    flow = ef.Dataflow("auctions-live")
    events = Events.generated(flow, rate=RATE, event_rate=5_000, every="50ms", out_of_order_group_size=500)
    streams = {"person": events.person, "auction": events.auction, "bid": events.bid}
    for name, stream in streams.items():
        stream.write(ef.write_parquet(tmp_path / "events" / name, name=f"taken-{name}"))
    for name in CHOSEN:
        QUERIES[name](events).write(ef.write_parquet(tmp_path / name, name=name))

    saved, by_hand = ef.CheckpointConfig(interval="1s"), ef.BalanceConfig("off")
    job = flow.run(config=ef.JobConfig(parallelism=2, key_groups=32, checkpoint=saved, balance=by_hand))
    try:

        def taken():
            return sum(figures.rows_in for name in streams for figures in figures_of(job, name))

        until(lambda: taken() > EVENTS / 10, "events have come", PATIENCE)
        job.rebalance("counts", policy="lpt")
        grown = job.scale("counts", 3, timeout="3m")
        before = taken()
        until(lambda: taken() > before + EVENTS / 10, "more events have come to three workers", PATIENCE)
        moved = job.rebalance("newcomers", policy="lpt")
        shrunk = job.scale("newcomers", 1, timeout="3m")
        until(lambda: taken() > EVENTS, "a million events have come", PATIENCE)
        job.stop(drain=True)
        job.wait("240s")
    finally:
        job.cancel()

    assert grown.keys_moved
    assert shrunk.keys_moved
    assert moved.problem is None
    with connect(tmp_path / "events") as database:
        for name in CHOSEN:
            rows, missing, wrong = compare(database, name, tmp_path / name)
            assert rows > 0
            assert (missing, wrong) == (0, 0), name


def test_a_check_moves_scales_and_kills_and_all_rows_are_duckdbs(capsys):
    """Updated rows of a key arrive from several workers, before and after they were killed."""
    command = ["bench", "check", "--queries", "q9", "--runtime", "ray", "--moves", "--kills"]
    exit_code = main([*command, "--events", "100000", "--rate", "4000", "--disorder", "500", "--seed", "7"])
    said = capsys.readouterr().err
    assert exit_code == 0, said
    assert "q9: equal" in said
    assert "nexmark-check-q9: " in said
