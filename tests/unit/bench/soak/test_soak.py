"""The growth that the soak benchmark reports, and the resources of a process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading

import pytest
from patience import patience

import evenflow as ef
from evenflow.bench.harness.statistics import robust_slope
from evenflow.bench.soak.flow import KEYS, RATE, soak_flow
from evenflow.bench.soak.footprint import Footprint, files_in, together
from evenflow.bench.soak.run import job_verdicts, jobs_verdicts

MINUTES = [minute / 6 for minute in range(360)]


def curve(value):
    return [(minute, value(minute)) for minute in MINUTES]


def missed(curves):
    return [verdict.claim for verdict in job_verdicts(curves) if not verdict.met]


def test_noise_warm_up_and_what_rises_and_falls_are_no_growth():
    noise = random.Random(7)
    curves = {
        "driver rss": curve(lambda minute: 200 + noise.gauss(0, 3)),
        "coordinator rss": curve(lambda minute: 190 - 40 * 0.5**minute),
        "sessions-0 rss": curve(lambda minute: 240 + 10 * (minute * 0.75 % 1)),
        "visits-0 descriptors": curve(lambda minute: 57 + noise.randrange(2)),
        "checkpoints files": curve(lambda minute: 60 - 40 * (minute % 3) / 3),
    }
    assert missed(curves) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("driver rss", lambda minute: 200 + minute / 6, id="a sixth of a MiB in a minute"),
        pytest.param("coordinator descriptors", lambda minute: 57 + minute // 15, id="a descriptor in a quarter of an hour"),
        pytest.param("windows-1 threads", lambda minute: 34 + minute // 10, id="a thread in ten minutes"),
        pytest.param("sockets", lambda minute: 9 + minute // 10, id="a socket file"),
        pytest.param("checkpoints files", lambda minute: 50 + minute / 5, id="files of checkpoints"),
    ],
)
def test_a_slow_leak_is_growth(name, value):
    assert [claim.partition(":")[0] for claim in missed({name: curve(value)})] == [name]


def test_growth_by_design_and_ray_s_own_is_not_judged():
    curves = dict.fromkeys(("Ray gcs_server rss", "job rows", "driver pss"), curve(lambda minute: minute))
    assert job_verdicts(curves) == []


def test_a_driver_that_keeps_a_descriptor_of_every_fifth_job_grows():
    verdicts = jobs_verdicts("ray jobs", {"driver descriptors": [(job, 36 + job // 5) for job in range(1, 51)]})
    assert [verdict.met for verdict in verdicts] == [False]


def test_an_outlier_does_not_tilt_the_slope():
    assert robust_slope([0.0, 1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0, 500.0]) == 0.0


def test_a_footprint_has_the_descriptors_threads_and_processes_of_a_process():
    before, over = Footprint.of(os.getpid()), threading.Event()
    thread = threading.Thread(target=over.wait, args=(60,))
    thread.start()
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        during = Footprint.of(os.getpid())
        child.stdin.close()
        child.wait()
    over.set()
    thread.join(patience(60))
    assert (during.threads - before.threads, during.children - before.children) == (1, 1)
    assert during.descriptors > before.descriptors
    assert Footprint.of(child.pid) is None
    assert together([before, None, during]).threads == before.threads + during.threads


def test_files_are_counted_with_their_bytes(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"12345")
    assert files_in(tmp_path) == (1, 5)
    assert files_in(tmp_path / "gone") == (0, 0)


def test_the_long_job_has_every_kind_of_keyed_state(tmp_path):
    flow, _ = soak_flow(RATE, KEYS, tmp_path)
    assert [stage.name for stage in flow.plan(config=ef.JobConfig()).stages if stage.is_keyed] == [
        "sessions",
        "visits",
        "windows",
        "running",
    ]
