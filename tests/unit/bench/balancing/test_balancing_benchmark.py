"""The cost of balancing is the ratio of jobs that follow each other, without the first pair."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from evenflow.bench.balancing import run as balancing
from evenflow.bench.harness.task import Answer


@pytest.fixture
def tasks(monkeypatch):
    """Jobs of a machine that gets slower, in which balancing costs 2 %."""
    tasks = []

    def answers(module, task, timeout):
        tasks.append((module, task))
        used = [(10.0 + number // 2) * (1.02 if number % 2 else 1.0) for number in range(task.repeat)]
        return [Answer(1.0, task.rows, {}, {"cpu_seconds": each}) for each in used]

    monkeypatch.setattr(balancing, "run_system", answers)
    monkeypatch.setattr(balancing.machine, "busy_share", lambda: 0.0)
    monkeypatch.setattr(balancing, "find", lambda folder, variant, rows: SimpleNamespace(folder=folder, rows=rows, last_window=7))
    events = SimpleNamespace(folder="events", events=500, rows=lambda stream: 100)
    monkeypatch.setattr(balancing, "make", lambda folder, count, say: events)
    return tasks


def measured(*words):
    return balancing.run(balancing.BENCHMARK.parse(words), lambda _: None)


@pytest.mark.parametrize(("task", "module", "rows"), [("t2", "throughput.evenflow", 1_000), ("q5", "nexmark.evenflow", 100)])
def test_pairs_without_the_first_are_compared(tasks, task, module, rows):
    found = measured("--tasks", task, "--repeat", "3", "--rows", "1000")
    ((used, given),) = tasks
    assert (used, given.rows, given.repeat) == (module, rows, 8)
    assert given.options["balancers"] == ("off", "hotspot")
    off, on, ratio = found.cases
    assert [case.name for case in found.cases] == [f"{task}/off", f"{task}/hotspot", f"{task}/ratio"]
    assert off.values == pytest.approx([11e6 / rows, 12e6 / rows, 13e6 / rows])
    assert on.median == pytest.approx(12 * 1.02e6 / rows)
    assert ratio.values == pytest.approx([1.02] * 3)
    (verdict,) = found.verdicts
    assert not verdict.met
    assert verdict.claim == f"{task}: balanced / not, half of the pairs from 1.020 to 1.020"


def test_latencies_are_of_jobs_without_and_with_balancing_in_turn(tasks, monkeypatch):
    policies = []

    def latency(rate, total, config):
        policies.append(config.balance.policy)
        return {}

    monkeypatch.setattr(balancing, "evenflow", latency)
    monkeypatch.setattr(balancing, "after_warm_up", lambda counts: {0: [len(policies)]})
    monkeypatch.setattr(balancing, "percentile", lambda counts, share: float(counts[0]))
    found = measured("--tasks", "latency", "--repeat", "2")
    assert policies == ["off", "hotspot"] * 2
    assert [case.values for case in found.cases] == [(1.0, 3.0), (2.0, 4.0), (2.0, 4 / 3)]
