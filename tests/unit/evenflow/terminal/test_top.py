"""A job as text: heat, loads against the floor, decisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_jobs import view_at
from shown_upgrades import LINE, WATCHED, upgrade_report

from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.scheduler.load.metrics import OperatorLoad
from evenflow.scheduler.protocol.reports import UpgradeState
from evenflow.scheduler.protocol.view import StageView
from evenflow.terminal.console import as_text
from evenflow.terminal.heat import heat_table, marked_bar, strip
from evenflow.terminal.top import decision_lines, frame
from evenflow.views.history import History

STAGE = StageView(
    "count", ("count",), ("count-0", "count-1"), (), False, RoutingTable(np.array([0, 0, 0, 1], np.uint16)), balancer="hotspot"
)
LOAD = OperatorLoad({"count-0": 0.9, "count-1": 0.3}, {0: 0.8, 2: 0.1, 3: 0.2}, (("[b]JFK[/b]", 60),), 100)


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_each_worker_has_a_line_with_the_heat_of_its_key_groups_its_load_and_the_floor():
    text = as_text(heat_table(STAGE, LOAD, "Uneven."))
    first, second = (line.split() for line in text.splitlines() if line.startswith("count-"))
    assert first[:3] == ["count-0", "3", "█·▂"]
    assert second[:3] == ["count-1", "1", "▃"]
    assert (first[-1], second[-1]) == ("90%", "30%")
    assert text.splitlines()[0] == "count: imbalance 1.50, floor 1.20, balancer hotspot"
    assert text.splitlines()[-2:] == ["hottest keys [b]JFK[/b] 60.0%", "Uneven."]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(("share", "mark", "drawn"), [(1.0, 0.5, "██│█"), (0.0, 1.0, "   │"), (0.5, 0.0, "│█  "), (2.0, 2.0, "███│")])
def test_the_floor_is_marked_in_the_bar(share, mark, drawn):
    assert marked_bar(share, mark, 4) == drawn


def test_a_strip_is_no_longer_than_its_groups_and_shows_the_hottest_of_neighbours():
    assert strip(np.array([0.0, 1.0]), 8, hottest=1.0) == "·█"
    assert strip(np.array([0.0, 1.0, 0.0, 0.0]), 2, hottest=1.0) == "█·"
    assert strip(np.zeros(3), 8, hottest=0.0) == "···"
    assert strip(np.zeros(0), 8, hottest=1.0) == ""


def entry(begin: float, answer: str = "yes", **parts: str) -> dict[str, object]:
    facts = {"who": "balancer", "stage": "count", "what": "moves 3 key groups", "reason": "worker 0 is hot", "expected": "", "effect": ""}
    return {"begin": begin, "answer": answer, **facts, **parts}


def test_a_decision_is_shown_with_its_origin_reason_and_effect():
    text = decision_lines([entry(0.0, expected="1.5 → 1.1", effect="1.5 → 1.2")], 5).plain.splitlines()
    assert text[0].endswith("balancer, count: moves 3 key groups")
    assert [line.strip() for line in text[1:]] == ["worker 0 is hot", "expected 1.5 → 1.1; effect 1.5 → 1.2"]


def test_changes_go_before_looks_that_changed_nothing():
    looks = [entry(at, "no", what=f"look {at:.0f}") for at in (1.0, 3.0)]
    text = decision_lines([entry(2.0), entry(4.0, "failed"), *looks], 3).plain
    assert [line.partition(": ")[2] for line in text.splitlines()[::2]] == [
        "moves 3 key groups",
        "(no) look 3",
        "(failed) moves 3 key groups",
    ]
    assert "look" not in decision_lines([entry(2.0), entry(4.0), *looks], 2).plain


def picture(**parts: object) -> str:
    """Draw a job with these parts of its view, and of its status."""
    history, view = History("clicks"), view_at(3)
    history.add(replace(view, status=replace(view.status, upgrade=parts.pop("upgrade", None)), **parts))
    return as_text(frame(history))


def test_an_upgrade_is_shown_with_both_versions_while_the_new_code_is_watched():
    text = picture(upgrade=WATCHED, upgrades=(upgrade_report(),))
    assert LINE in text.splitlines()
    assert "old and new code side by side" in text
    moving = replace(WATCHED, state=UpgradeState.ROLLING, watched=None, steps_left=3)
    text = picture(upgrade=moving, upgrades=(upgrade_report(state=UpgradeState.ROLLING),))
    assert "moving all keys to the new code, 3 steps left" in " ".join(text.split())
    assert "side by side" not in text
    assert "upgrade 0" not in picture(upgrades=(upgrade_report(state=UpgradeState.DONE, seconds=1.0),))


def test_a_worker_that_has_replaced_another_has_the_heat_of_its_index():
    stage = replace(STAGE, workers=("count-0v2", "count-1"))
    load = replace(LOAD, workers={"count-0v2": 0.9, "count-1": 0.3})
    rows = [line.split()[:3] for line in as_text(heat_table(stage, load)).splitlines() if line.startswith("count-")]
    assert rows == [["count-0v2", "3", "█·▂"], ["count-1", "1", "▃"]]


def test_the_busiest_of_many_workers_are_shown():
    workers = tuple(f"count-{index}" for index in range(1000))
    stage = replace(STAGE, workers=workers, table=even_table(1024, 1000))
    shares = {worker: (index % 500) / 500 for index, worker in enumerate(workers)}
    text = as_text(heat_table(stage, replace(LOAD, workers=shares, groups={}))).splitlines()
    shown = [int(line.split()[0].removeprefix("count-")) for line in text if line.startswith("count-")]
    assert shown == [*range(468, 500), *range(968, 1000)]
    assert "the 64 busiest of 1,000 workers" in " ".join(text)


def test_a_key_that_moved_alone_heats_its_new_worker_whose_groups_are_the_same():
    stage = replace(STAGE, table=RoutingTable(np.array([0, 0, 0, 1], np.uint16), {4: 1}))
    rows = [line.split()[:3] for line in as_text(heat_table(stage, LOAD)).splitlines() if line.startswith("count-")]
    assert rows == [["count-0", "3", "·▂"], ["count-1", "1", "█▃"]]
