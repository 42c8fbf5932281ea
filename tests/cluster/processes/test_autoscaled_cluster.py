"""A job on a cluster whose autoscaler starts and ends fake nodes of this machine, each with two CPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from autoscaled import autoscaled, lose_head
from patience import patience
from ray_settings import OF_PROGRAMS
from watching import SUPPORT

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


class Program:
    """The process of `on_autoscaled.py`, whose messages go to the file `log`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self._log = process, log

    def say(self, *words: object) -> Any:
        """Send it a command, or none, and return the answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        if words:
            stdin.write(" ".join(map(str, words)) + "\n")
            stdin.flush()
        printed = []
        for line in iter(stdout.readline, ""):
            printed.append(line)
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        raise AssertionError("".join(printed)[-1000:] + self._log.read_text()[-3000:])


@contextmanager
def started(environment: dict[str, str], folder: Path, *how: str) -> Iterator[Program]:
    """Run `on_autoscaled.py`, which is killed in the end."""
    command = [sys.executable, "-W", "ignore", str(SUPPORT / "on_autoscaled.py"), str(folder), *how]
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
        try:
            yield Program(process, log)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> dict[str, Any]:
    """Return what one job saw on two clusters.

    It scales out and in, a node drains, and the first cluster's head is killed. On the second its driver is killed, while it waits for
    nodes.
    """
    own, seen = tmp_path_factory.mktemp("autoscaled"), {}
    with autoscaled(folder / "first") as environment, started(environment, own) as program:
        seen["start"] = program.say()
        seen["out"] = program.say("scale", 3)
        seen["in"] = program.say("scale", 1)
        seen["returned"] = program.say("nodes", 1)
        seen["added"] = program.say("scale_out")
        seen["drained"] = program.say("drain", seen["returned"]["nodes"][0])
        lose_head(folder / "first")
        seen["without_head"] = program.process.wait(patience(240))
    with autoscaled(folder / "second") as environment:
        with started(environment, own) as program, started(environment, own, "watch") as watcher:
            seen["again"] = program.say()
            watcher.say()
            seen["asked"] = program.say("ask", 5)
            program.process.kill()
            seen["killed"] = watcher.say("gone")
        with started(environment, own) as program:
            program.say()
            program.say("stop")
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


def test_a_job_that_is_given_a_node_waits_until_the_autoscaler_has_started_one(seen):
    (added,) = seen["added"]["added"]
    assert sorted(seen["added"]["nodes"]) == sorted([*seen["returned"]["nodes"], added])
    assert Counter(seen["added"]["places"].values()) == dict.fromkeys(seen["added"]["nodes"], 2)
    assert seen["added"]["waits"][0].startswith("scaling out waits for nodes: job `autoscaled`: 0 of 1 nodes")


def test_a_node_that_ray_drains_is_emptied_before_it_goes(seen):
    (gone,) = seen["returned"]["nodes"]
    assert gone not in seen["drained"]["places"].values()
    assert set(seen["drained"]["places"]) == set(seen["added"]["places"]), "no operator has fewer workers"
    assert seen["drained"]["restarts"] == {"requested": 1}, "no worker was lost"


def test_a_program_whose_head_is_lost_ends(seen):
    assert seen["without_head"] != 0


def test_a_killed_drivers_request_for_nodes_is_gone_and_the_autoscaler_ends_all_nodes(seen):
    assert seen["asked"]["rooms"] == ["autoscaled/room"]
    assert (seen["killed"]["rooms"], seen["killed"]["nodes"]) == ([], [])


def test_a_program_whose_head_was_lost_and_that_was_killed_continues_exactly(seen):
    rows = seen["rows"]
    assert sorted(row["seq"] for row in rows) == list(range(len(rows)))
    counts = Counter(row["key"] for row in rows)
    assert sorted((row["key"], row["n"]) for row in rows) == sorted((key, n + 1) for key, count in counts.items() for n in range(count))
