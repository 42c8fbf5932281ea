"""Keys of a job on Ray are read while its stream runs, and while they move."""

from __future__ import annotations

import json

import pytest
from watching import until

import evenflow as ef
from evenflow.cli.command_line import main


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
