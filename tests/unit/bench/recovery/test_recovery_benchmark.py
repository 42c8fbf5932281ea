from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.harness.plots import save_plot
from evenflow.bench.harness.record import Run
from evenflow.bench.recovery import checkpoints
from evenflow.bench.recovery.checkpoints import Pair, kept_rate, latency_ratio, phase_cases
from evenflow.bench.recovery.output_log import KEYS, OutputLog, key_of, outputs, processes, resumed, writers, wrong_counts
from evenflow.bench.recovery.run import draw, resumed_findings
from evenflow.bench.recovery.timeline import Phase, Step, cases, line, medians_of, phases


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path)


def test_every_key_comes_once_in_as_many_rows_as_there_are_keys():
    assert np.array_equal(np.sort(key_of(np.arange(3 * KEYS, 4 * KEYS), KEYS, KEYS)), np.arange(KEYS))


def test_keys_that_change_take_turns_once_every_key_has_come():
    seq = np.arange(13)
    keys = key_of(seq, 9, 2)
    assert np.array_equal(np.sort(keys[:9]), np.arange(9))
    assert np.array_equal(keys[9:], keys[[0, 1, 0, 1]])
    counts = np.array([np.count_nonzero(keys[: place + 1] == key) for place, key in enumerate(keys)])
    assert wrong_counts(seq, counts, 9, 2) == 0
    assert wrong_counts(seq, counts + 1, 9, 2) == 13


def test_a_count_of_a_lost_or_a_repeated_row_is_wrong():
    seq = np.array([0, KEYS, 2 * KEYS, 2 * KEYS + 1])
    assert wrong_counts(seq, np.array([1, 2, 3, 3]), KEYS, KEYS) == 0
    assert wrong_counts(seq, np.array([1, 2, 2, 4]), KEYS, KEYS) == 2


def test_the_truncated_line_of_a_killed_process_is_ignored(folder, tmp_path):
    log = OutputLog(folder)
    log.note(newest=7, rows=3, wrong=0)
    log.close()
    (tmp_path / "1-killed").write_text("1000 9 2 0\n2000 10")
    found = outputs(folder)
    assert [(output.newest, output.rows) for output in found] == [(9, 2), (7, 3)]
    assert writers(folder) == {output.writer for output in found}
    assert 1 in processes(folder)


def test_repeated_output_is_not_new(folder, tmp_path):
    (tmp_path / "1-before").write_text("1000000000 50 10 0\n3000000000 60 10 0\n")
    old = writers(folder)
    assert resumed(outputs(folder), 2_000_000_000, old) is None
    (tmp_path / "2-after").write_text("4000000000 55 10 0\n5000000000 61 10 1\n")
    found = resumed(outputs(folder), 2_000_000_000, old)
    assert (found.first, found.new, found.wrong) == (2.0, 3.0, 1)
    assert resumed_findings("evenflow", [found], []).checks == ["evenflow: 1 counts are wrong"]


def pair(rate, p99):
    return Pair(checkpoints.Phase(100.0, 4.0), checkpoints.Phase(rate, p99, 2.5, 1000), 0.0)


def test_checkpoints_are_judged_by_the_median_of_the_pairs():
    pairs = [pair(99.0, 5.0), pair(50.0, 40.0), pair(98.0, 6.0)]
    assert kept_rate(pairs) == 0.98
    assert latency_ratio(pairs) == 1.5
    assert {case.name: case.median for case in phase_cases("1 M keys", pairs)}["1 M keys/checkpoint takes"] == 2.5


def test_a_phase_ends_when_the_last_process_has_taken_its_step():
    taken = [Step(9.0, "begun"), Step(10.2, "noticed"), Step(10.3, "begun"), Step(10.9, "state restored"), Step(10.5, "state restored")]
    found = phases(10.0, [*taken, Step(10.8, "channels connected")])
    assert line(found) == "noticed 200, begun 100, state restored 600, channels connected 0"
    assert sum(phase.seconds for phase in found) == pytest.approx(0.9)


def test_phases_are_cases_and_drawn_below_the_kills(tmp_path):
    found = cases("evenflow, warm spare", [[Phase("noticed", 0.1), Phase("begun", 0.2)], [Phase("noticed", 0.3)]])
    assert [(case.name, case.values) for case in found] == [("evenflow, warm spare/until noticed", (0.1, 0.3))]
    run = Run("recovery", "2026-01-01T00:00:00+00:00", {}, {}, "abc", {}, tuple(found), series={"evenflow, warm spare": [1.5, 2.5]})
    assert medians_of(run) == {"evenflow, warm spare": {"noticed": 0.2}}
    assert save_plot(run, tmp_path / "recovery.png", draw)


@pytest.mark.parametrize(("series", "drawn"), [({"evenflow": [1.5, 2.5], "Spark": [12.0, 20.0]}, True), ({}, False)])
def test_kills_are_drawn(series, drawn, tmp_path):
    run = Run("recovery", "2026-01-01T00:00:00+00:00", {}, {}, "abc", {}, (), series=series)
    assert save_plot(run, tmp_path / "recovery.png", draw) == drawn == (tmp_path / "recovery.png").exists()
