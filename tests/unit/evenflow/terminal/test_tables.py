from __future__ import annotations

import re
from dataclasses import replace

import pytest
from shown_upgrades import COMPARED, LINE, WATCHED

import evenflow as ef
from evenflow.balancer.plan import BalancePlan, KeySplit
from evenflow.scheduler.load.metrics import JobMetrics, OperatorLoad
from evenflow.scheduler.load.wait import Wait, WaitKind
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.reports import (
    CheckpointReport,
    CheckpointState,
    MigrationReport,
    MigrationState,
    NodeScalingReport,
    NodeScalingState,
    ScalingReport,
    ScalingState,
)
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.terminal.console import as_text
from evenflow.terminal.metrics import load_table, metrics_tables
from evenflow.terminal.reports import (
    checkpoints_table,
    migration_table,
    migrations_table,
    node_scalings_table,
    scalings_table,
    versions_table,
)
from evenflow.terminal.status import status_table
from evenflow.terminal.top import headline
from evenflow.terminal.units import bar

LOAD = OperatorLoad({"count-0": 0.75, "count-1": 0.25}, {3: 0.6, 5: 0.4}, (("JFK", 60), ("LAX", 10)), 100)
PLAN = BalancePlan((), 1.5, 1.2, 1.2, 100, "worker 0 is hot")


def report(**changes):
    facts = {
        "number": 4, "operator": "count", "strategy": "fluid", "reason": "hotspot: hot", "plan": PLAN, "state": MigrationState.DONE,
        "groups": 3, "routed_keys": 1, "steps": 4, "steps_done": 4, "keys_moved": 1234, "state_bytes": 56_789, "seconds": 0.25,
    }  # fmt: skip
    return MigrationReport(**{**facts, **changes})


def test_load_is_drawn_with_imbalance_floor_workers_groups_and_keys():
    text = as_text(load_table(LOAD))
    assert text.startswith("load of 2 workers: imbalance 1.50, floor 1.20")
    assert all(part in text for part in ("count-0", "75.0%", "1.50", "3 60.0%, 5 40.0%", "JFK 60.0%, LAX 10.0%"))


def test_the_length_of_a_bar_is_the_load_relative_to_the_hottest_worker():
    lines = [line for line in as_text(load_table(LOAD)).splitlines() if "count-" in line]
    assert [line.count("█") for line in lines] == [24, 8]


def test_load_of_nothing_is_even():
    load = OperatorLoad({}, {}, ())
    assert (load.imbalance, load.floor) == (1.0, 1.0)
    assert "load of 0 workers" in as_text(load_table(load))


def test_a_migration_is_drawn_with_what_moved_why_and_how_long_it_took():
    text = as_text(migration_table(report(latency_ms=(1.0, 2.5))))
    assert all(part in text for part in ("fluid", "done", "1,234", "56,789", "0.250", "1.0/2.5", "1.50 to 1.20, floor 1.20"))


def test_splits_of_a_plan_are_drawn():
    plan = replace(PLAN, splits=(KeySplit("JFK", 2, (0, 1), "left"),), gathers=("LAX",))
    text = as_text(migration_table(report(plan=plan)))
    assert "'JFK' over workers 0, 1, 2, left is dealt" in text
    assert "'LAX'" in text


def test_problems_that_a_job_goes_on_in_spite_of_are_drawn():
    text = as_text(status_table(JobStatus("shop", JobState.RUNNING, None, ("a-0",), 3, 1.25, problems=("operator `look`: no table",))))
    assert "operator `look`: no table" in text


def test_a_job_that_stands_still_is_drawn_with_its_cause_and_the_stack_each_problem_once():
    held = Wait(WaitKind.WATERMARK, "partition 1 gives nothing", 11.0)
    call = Wait(WaitKind.FUNCTION, "classify has not returned for 7 s", 7.0, stack=("classify (job.py:3)",))
    status = JobStatus("shop", JobState.RUNNING, None, ("a-0",), 3, 1.25, problems=(held.text,), waits_for=(call, held))
    for text in (as_text(status_table(status)), as_text(headline(status)), str(status)):
        assert [text.count(part) for part in (call.text, call.stack[0], held.text)] == [1, 1, 1]


def test_the_upgrade_under_way_is_a_line_of_the_status_and_nothing_without_one():
    status = JobStatus("shop", JobState.RUNNING, None, ("price-0",), 3, 1.25, upgrade=WATCHED)
    assert LINE in str(status).splitlines()
    assert LINE in as_text(headline(status)).splitlines()
    assert LINE.removeprefix("upgrade ") in " ".join(as_text(status_table(status)).split())
    for draw in (str, lambda status: as_text(headline(status)), lambda status: as_text(status_table(status))):
        assert "upgrade" not in draw(replace(status, upgrade=None))


def test_old_and_new_code_are_drawn_side_by_side():
    rows = [line.split() for line in as_text(versions_table([COMPARED])).splitlines() if line.startswith("price")]
    assert rows == [["price", "old", "9,500", "0", "0.100", "10.0", "2,000"], ["price", "new", "500", "3", "0.200", "20.0", "64"]]


def test_workers_with_one_index_have_different_names_in_the_table_of_their_operator():
    metrics = JobMetrics({"read-0": "read", "count-0": "count", "count-1": "count"})
    metrics.join("read-0v2", "read")
    metrics.join("count-0v2", "count")
    lines = as_text(metrics_tables(metrics.workers())).splitlines()
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["0", "0v2", "0", "0v2", "1"]
    assert [line.partition(":")[0] for line in lines if "workers" in line] == ["read", "count"]


def test_a_job_that_restarts_is_drawn_with_its_error_the_count_and_the_next_try():
    error, problems = ef.JobLostError("worker a-0 is gone\nwith a second line"), ("restart 3 of at most 10 in a row: a-0 is gone",)
    status = JobStatus("shop", JobState.RESTARTING, error, ("a-0",), 3, 1.25, problems=problems, restarts=3, next_try=0.4)
    table, top = as_text(status_table(status)), as_text(headline(status))
    assert "3 restarts, the next try in 0.4 s" in table
    assert [line.strip() for line in top.splitlines()] == [
        "shop restarting, 1 s, 3 checkpoints, 3 restarts, the next try in 0.4 s",
        "restart 3 of at most 10 in a row: a-0 is gone",
        "error: worker a-0 is gone",
    ]


def test_a_migration_under_way_shows_its_steps():
    text = as_text(migrations_table([report(state=MigrationState.WAITING, steps_done=2, seconds=None)]))
    assert "2 of 4" in text
    assert "4: - hotspot: hot" in text


def test_all_tables_of_reports_show_when_and_why_something_began_and_its_problem():
    began = {"began_at": 0.0, "seconds": 2.0, "problem": "a worker was lost"}
    ended = report(**began, state=MigrationState.ENDED_EARLY)
    scaling = {"number": 1, "state": ScalingState.FAILED, "reason": "ds2: busy", **began}
    nodes = {"number": 2, "state": NodeScalingState.FAILED, "reason": "sums", **began, "added": (), "removed": "ab12cd34ef"}
    tables = {
        "4:": migrations_table([ended]),
        "1:": scalings_table([ScalingReport(**scaling, operator="count", before=2, after=3, keys_moved=0, state_bytes=0)]),
        "2:": node_scalings_table([NodeScalingReport(**nodes, parallelism={"count": (3, 2)}, replaced=("read-0",))]),
    }
    for number, table in tables.items():
        text = as_text(table)
        assert re.search(rf"{number} \d\d:[03]0:00 .*; a worker was lost", text), text
        assert "2.000" in text
    assert all(
        part in as_text(tables["2:"]) for part in ("ab12cd34 given back", "failed", "count 3 to 2 workers", "read-0 resumed on other nodes")
    )
    checkpoint = CheckpointReport(number=3, state=CheckpointState.FAILED, reason="by hand", **began)
    text = as_text(checkpoints_table([checkpoint]))
    assert re.search(r"3  \d\d:[03]0:00  failed +2.000", text), text
    assert "checkpoint 3 failed in 2.000 s: by hand; a worker was lost" in text


@pytest.mark.parametrize(("share", "drawn"), [(-1.0, ""), (0.0, ""), (1 / 64, "▏"), (0.5, "████"), (1.0, "████████"), (9.0, "████████")])
def test_bars_are_drawn_to_an_eighth_of_a_character(share, drawn):
    assert bar(share, 8) == drawn
