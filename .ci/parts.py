"""Runs the parts of `make test`, `make check` or `make nightly`, or named parts one after another: `python .ci/parts.py unit`.

`make test` is the first check, of a few minutes; `make check` runs the remaining tests but those of `make nightly`, which start whole
clusters or cost as much as a hundred others. Several parts at a time share the
processors, the longest first; tests on Ray and Spark often wait, and leave more than a half to the others. Each part writes a log
to `build/`. While parts run, a line shows their progress; finally a summary shows what failed, why, and how to run it alone.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from progress import Progress
from summary import details, summary

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))
TOLD = os.environ.get("EVENFLOW_TEST_PATIENCE")
from patience import FACTOR, VARIABLE  # noqa: E402 -- tests are no package

LOGS = ROOT / "build"
LOOK_SECONDS = 0.5
LAST_WORDS = 10.0
"""Seconds that interrupted parts have to write which of their tests have failed."""

AT_ONCE = {"test": 4, "check": 3, "nightly": 2}
"""The number of parts that run at a time. Those of `make test` that start jobs mostly wait; two of `make check` keep a processor
busy.
"""

UNIT, CLUSTER, SPARK, DOCSTRINGS = Path("tests/unit"), Path("tests/cluster"), Path("tests/spark"), Path("tests/docstrings")
SIMULATION, PROJECT = Path("tests/simulation"), Path("tests/project")
CONNECTORS = UNIT / "connectors"
"""Tests that sometimes wait for brokers, databases and servers."""
PROGRAMS = [UNIT / "evenflow", UNIT / "object_stores", DOCSTRINGS]
"""Tests of users' programs and of those in the documentation. They wait for jobs and processes."""

SIMULATIONS = [
    SIMULATION / f"test_{name}.py"
    for name in (
        "simulation", "moving", "scaling", "steering", "state_in_backends", "joins", "kept_values", "kinds_of_windows", "crashing",
        "splitting", "automatic_splitting", "rows_and_times", "nexmark_in_simulations",
    )
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """A command with a log."""

    name: str
    command: list[str]

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"


def pytest(which: str, *paths: Path, without: list[Path] | tuple[Path, ...] = ()) -> list[str]:
    """Return the command that runs the tests in `paths` with these marks."""
    ignored = [f"--ignore={path}" for path in without]
    chosen = ["-m", which] if which else []
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "--durations=12", *chosen, *map(str, paths), *ignored]


FIRST = [
    Part("clusters", pytest("not slow", CLUSTER, SPARK)),
    Part("programs", pytest("not slow", *PROGRAMS)),
    Part("unit", pytest("not slow", UNIT, SIMULATION, PROJECT, without=[*SIMULATIONS, CONNECTORS, *PROGRAMS[:-1]])),
    Part("style", ["make", f"VENV={sys.prefix}", "--no-print-directory", "--keep-going", "lint", "types"]),
    Part("connectors+few-simulations", pytest("not slow", CONNECTORS, *SIMULATIONS)),
]
"""Parts of `make test`."""

CHECKED = "slow and not nightly"

REST = [
    Part("cluster", pytest(CHECKED, CLUSTER)),
    Part("slow-unit", pytest(CHECKED, DOCSTRINGS, UNIT, PROJECT)),
    Part("simulations", pytest(CHECKED, *SIMULATIONS)),
    Part("planted-faults", pytest(CHECKED, SIMULATION, without=SIMULATIONS)),
    Part("spark", pytest(CHECKED, SPARK)),
    Part("packages", [sys.executable, ".ci/dist.py"]),
]
"""Parts of `make check`."""

NIGHTLY = [
    Part("nightly-clusters", pytest("nightly", CLUSTER, SPARK)),
    Part("nightly-others", pytest("nightly", DOCSTRINGS, UNIT, SIMULATION, PROJECT)),
]
"""Parts of `make nightly`."""

SIMULATE = Part("simulate", pytest("", *SIMULATIONS))
"""The part that `make simulate` runs, with more seeds."""

TIERS = {"test": FIRST, "check": REST, "nightly": NIGHTLY}


def main(names: list[str]) -> int:
    """Run a tier or named parts; return the exit code: 1 if a part has failed, 2 for an unknown name."""
    os.chdir(ROOT)
    os.environ["COLUMNS"] = "200"
    if len(names) == 1 and names[0] in TIERS:
        return side_by_side(names[0])
    parts = {part.name: part for tier in (*TIERS.values(), [SIMULATE]) for part in tier}
    if unknown := set(names).difference(parts):
        print(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join([*TIERS, *parts])}")
        return 2
    return max((subprocess.run(parts[name].command, check=False).returncode for name in names), default=0)


def side_by_side(tier: str) -> int:
    """Run the parts of a tier concurrently; return the exit code: 1 if a part has failed."""
    LOGS.mkdir(exist_ok=True)
    os.environ[VARIABLE] = TOLD or f"{FACTOR * AT_ONCE[tier] / 2:.1f}"
    waiting, running, ended, spent = list(TIERS[tier]), dict[str, subprocess.Popen[bytes]](), dict[str, int](), processor_seconds()
    logs = {part.name: part.log for part in waiting}
    for log in logs.values():
        log.unlink(missing_ok=True)
    progress = Progress(f"make {tier}", logs)
    print(f"make {tier}: {', '.join(logs)}; logs in build/; deadlines are {os.environ[VARIABLE]} times as long as usual", flush=True)
    try:
        while waiting or running:
            while waiting and len(running) < AT_ONCE[tier]:
                part = waiting.pop(0)
                running[part.name] = start(part)
            time.sleep(LOOK_SECONDS)
            for name, process in list(running.items()):
                if (code := process.poll()) is not None:
                    del running[name]
                    ended[name] = code
                    progress.end(name, code, processor_seconds() - spent)
                    spent = processor_seconds()
            progress.show()
    except BaseException as why:
        progress.clear()
        if not isinstance(why, KeyboardInterrupt):  # a terminal's Ctrl-C goes to the parts too
            interrupt(running)
        report(tier, {**ended, **last_codes(running)}, logs, progress.elapsed())
        raise
    report(tier, ended, logs, progress.elapsed())
    return int(any(ended.values()))


def interrupt(running: dict[str, subprocess.Popen[bytes]]) -> None:
    """Interrupt parts, which lets pytest write which tests have failed."""
    for process in running.values():
        process.send_signal(signal.SIGINT)


def last_codes(running: dict[str, subprocess.Popen[bytes]]) -> dict[str, int]:
    """Return the exit codes of interrupted parts; those that don't end soon are terminated."""
    deadline = time.monotonic() + LAST_WORDS
    for process in running.values():
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
    return {name: process.wait() for name, process in running.items()}


def report(tier: str, ended: dict[str, int], logs: dict[str, Path], seconds: float) -> None:
    """Print how parts ended, by their exit codes."""
    said = {name: (code, logs[name].read_text(encoding="utf-8", errors="replace")) for name, code in ended.items()}
    for line in [*details(said), *summary(f"make {tier}", said, seconds)]:
        print(line, flush=True)


def processor_seconds() -> float:
    """Return the processor time of all finished parts and their processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start(part: Part) -> subprocess.Popen[bytes]:
    """Run a part in the background."""
    with part.log.open("wb") as log:
        return subprocess.Popen(part.command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
