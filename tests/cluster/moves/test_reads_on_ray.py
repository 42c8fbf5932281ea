"""Keys of a job on Ray, and tables of all keys, are read while its stream runs, and while they move."""

from __future__ import annotations

import json

import pytest
from watching import until

import evenflow as ef
from evenflow.cli.command_line import main


def test_tables_of_all_keys_are_of_one_moment_while_keys_move_and_the_command_prints_them(capsys, tmp_path):
    def numbered(state, row):  # inside, so that it travels to workers, which don't find this module
        return (state or 0) + 1, None

    flow = ef.Dataflow("tabled")
    keyed = flow.read(ef.generate(rate=2_000, every="50ms", keys=50, string_keys=True)).parallelism(1).key_by("key")
    keyed.aggregate(n=ef.count(), newest=ef.max("seq")).named("totals").write(ef.to_callback(lambda row: None, name="to_totals"))
    keyed.stateful_map(numbered).named("numbered").write(ef.to_callback(lambda row: None, name="to_numbered"))
    checkpoint = ef.CheckpointConfig(str(tmp_path), interval="200ms")
    job = flow.run(runtime="ray", config=ef.JobConfig(parallelism=2, key_groups=16, checkpoint=checkpoint))
    until(lambda: job.read("numbered", "key-0") is not None, "the key has state")
    before = 0
    for turn, strategy in enumerate(("sudden", "lazy", "fluid", "batched")):
        for operator in ("totals", "numbered"):
            job.migrate(operator, groups=range(16), to=turn % 2, strategy=strategy, timeout=None)
            totals, numbers = of_one_checkpoint(job)
            counts = {row["key"]: row["n"] for row in totals.to_pylist()}
            rows = sum(counts.values())
            assert {row["key"]: row["state"] for row in numbers.to_pylist()} == counts
            assert max(totals["newest"].to_pylist()) == rows - 1  # all rows of the source up to one of them, and no other
            assert rows >= before
            before = rows
            until(lambda: all(report.over for report in job.migrations()), "the migration is over")
    assert sum(job.table("totals", fresh=True)["n"].to_pylist()) > before
    capsys.readouterr()
    assert main(["read", "tabled", "totals", "--fresh"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == 50
    assert sum(row["n"] for row in printed) > before
    assert main(["read", "tabled", "totals", "--most", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    job.cancel()
    job.wait("60s")


def of_one_checkpoint(job):
    """Return the tables of both operators in the same checkpoint."""
    while True:
        tables = [job.table("totals", fresh=True), job.table("numbered")]
        if tables[0].schema.metadata == tables[1].schema.metadata:
            return tables


def test_values_of_a_key_never_go_back_while_it_moves_and_the_command_prints_them(capsys):
    def numbered(state, row):  # inside, so that it travels to workers, which don't find this module
        return (state or 0) + 1, None

    flow = ef.Dataflow("read")
    keyed = flow.read(ef.generate(rate=2_000, every="50ms", keys=50, string_keys=True)).key_by("key")
    keyed.aggregate(n=ef.count()).named("totals").write(ef.to_callback(lambda row: None, name="to_totals"))
    keyed.stateful_map(numbered).named("numbered").write(ef.to_callback(lambda row: None, name="to_numbered"))
    job = flow.run(runtime="ray", config=ef.JobConfig(parallelism=2, key_groups=16))
    until(lambda: job.read("totals", "key-0") is not None and job.read("numbered", "key-0") is not None, "the key has state")
    row, number = job.read("totals", "key-0"), job.read("numbered", "key-0")
    assert row["key"] == "key-0"
    for turn, strategy in enumerate(("sudden", "lazy", "fluid", "batched")):
        for operator in ("totals", "numbered"):
            job.migrate(operator, groups=range(16), to=turn % 2, strategy=strategy, timeout=None)
            later, higher = job.read("totals", "key-0"), job.read("numbered", "key-0")
            assert later["n"] >= row["n"]
            assert higher >= number
            row, number = later, higher
            until(lambda: all(report.over for report in job.migrations()), "the migration is over")
    assert job.read("totals", "nobody") is None
    with pytest.raises(ef.RequestError, match="its key column `key` is string, and 7 is int64"):
        job.read("totals", 7)
    capsys.readouterr()
    assert main(["read", "read", "totals", "key-0"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] >= row["n"]
    assert main(["read", "read", "totals", "nobody"]) == 0
    assert json.loads(capsys.readouterr().out) is None
    job.cancel()
    job.wait("60s")
