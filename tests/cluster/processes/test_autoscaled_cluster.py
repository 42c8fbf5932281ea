"""A job on a cluster whose autoscaler starts and ends fake nodes of this machine, each with two CPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from autoscaled import autoscaled
from ray_settings import OF_PROGRAMS
from watching import SUPPORT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@contextmanager
def started(environment: dict[str, str], folder: Path) -> Iterator[Callable[..., Any]]:
    """Run `on_autoscaled.py`; yield a function that sends it a command, or none, and returns the answer."""
    command = [sys.executable, "-W", "ignore", str(SUPPORT / "on_autoscaled.py"), str(folder)]
    log = folder / "log"
    with (
        log.open("ab") as errors,
        subprocess.Popen(
            command,
            env=environment | {"PYTHONPATH": OF_PROGRAMS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None

        def say(*words: object) -> Any:
            if words:
                process.stdin.write(" ".join(map(str, words)) + "\n")
                process.stdin.flush()
            printed = []
            for line in iter(process.stdout.readline, ""):
                printed.append(line)
                if line.startswith("answer "):
                    return json.loads(line.removeprefix("answer "))
            raise AssertionError("".join(printed)[-1000:] + log.read_text()[-3000:])

        try:
            yield say
        finally:
            process.kill()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> dict[str, Any]:
    """Return what one job saw on two clusters: it scales out and in, a node drains, and then the first cluster is lost."""
    own, seen = tmp_path_factory.mktemp("autoscaled"), {}
    with autoscaled(folder / "first") as environment, started(environment, own) as say:
        seen["start"] = say()
        seen["out"] = say("scale", 3)
        seen["in"] = say("scale", 1)
        seen["returned"] = say("nodes", 1)
        seen["drained"] = say("drain", seen["returned"]["nodes"][0])
    with autoscaled(folder / "second") as environment, started(environment, own) as say:
        seen["again"] = say()
        say("stop")
    seen["rows"] = [json.loads(line) for part in sorted((own / "out").glob("*.json*")) for line in part.read_text().splitlines()]
    return seen


def test_a_job_that_starts_brings_the_nodes_that_its_workers_need(seen):
    assert seen["start"]["nodes"] == sorted(set(seen["start"]["places"].values()))
    assert len(seen["start"]["nodes"]) == 1, "two workers of one CPU each fill a node"


def test_an_operator_that_is_scaled_out_waits_for_the_node_that_the_autoscaler_starts(seen):
    assert len(seen["out"]["nodes"]) == 2
    assert set(seen["out"]["places"]) == {"generate-0", "counted-0", "counted-1", "counted-2"}
    assert Counter(seen["out"]["places"].values()) == dict.fromkeys(seen["out"]["nodes"], 2)


def test_the_autoscaler_ends_the_node_that_an_operator_has_left_while_the_job_runs(seen):
    assert seen["returned"]["nodes"] == seen["start"]["nodes"]
    assert seen["returned"]["places"] == seen["start"]["places"]
    assert seen["returned"]["state"] == "running"


def test_a_node_that_ray_drains_is_emptied_before_it_goes(seen):
    (gone,) = seen["returned"]["nodes"]
    assert gone not in seen["drained"]["places"].values()
    assert set(seen["drained"]["places"]) == set(seen["returned"]["places"]), "no operator has fewer workers"
    assert seen["drained"]["restarts"] == {"requested": 1}, "no worker was lost"


def test_a_program_whose_cluster_was_lost_continues_exactly_on_another(seen):
    rows = seen["rows"]
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))
    counts = Counter(row["key"] for row in rows)
    assert sorted((row["key"], row["n"]) for row in rows) == sorted((key, n + 1) for key, count in counts.items() for n in range(count))
