from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from evenflow.bench.harness.sinks import EDGES_MS, bin_of
from evenflow.bench.latency import run as latency


def histogram(*latencies):
    return np.bincount(bin_of(np.array(latencies)), minlength=len(EDGES_MS))


@pytest.fixture
def measured(monkeypatch):
    """Rows of the warm-up take a second, those after it 2 ms, and twice as long in Bytewax."""

    def system(factor):
        return lambda rate, total: {100: histogram(1000.0), 100 + latency.WARM_UP: histogram(*[2.0 * factor] * 100)}

    monkeypatch.setattr(latency, "SYSTEMS", {"evenflow": system(1), "bytewax": system(2)})
    monkeypatch.setattr(latency.machine, "busy_share", lambda: 0.0)
    return lambda *words: latency.run(latency.BENCHMARK.parse(words), lambda _: None)


def test_percentiles_are_of_the_rows_after_the_warm_up(measured):
    found = measured("--rates", "50000", "--repeat", "2")
    cases = {case.name: case.values for case in found.cases}
    assert cases["50000/evenflow/p50"] == cases["50000/evenflow/max"] == pytest.approx((2.0, 2.0), rel=0.01)
    assert [(second, pytest.approx(p50, rel=0.01)) for second, p50, _ in found.series["50000"]] == [(0, 2.0)]


def test_a_target_is_bytewax_s_latency_in_the_same_run(measured):
    found = measured("--systems", "evenflow,bytewax")
    ratios = {verdict.claim: verdict.measured for verdict in found.verdicts if "Bytewax" in verdict.claim}
    assert ratios == {f"{name} at 50,000 rows/s / Bytewax's": pytest.approx(0.5, rel=0.02) for name in ("p50", "p99")}


def test_bytewax_counts_every_row_once():
    program = "from evenflow.bench.latency.run import bytewax; print(sum(int(of.sum()) for of in bytewax(20_000, 20_000).values()))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split()[-1] == "20000"
