"""Runs the parts of `make test` side by side, or those that are named one after another: `python .ci/parts.py simulations`.

Tests on Ray and Spark wait often: two such parts at a time, each with a Ray cluster of its own, share the processors, and the others take
what these leave. Three at a time end no earlier, and more of them fail for want of time. Each part writes a log to `build/`, which is
printed when it has ended; a summary comes last.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from summary import summary

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "build"
LOOK_SECONDS = 0.5
UNIT, CLUSTER = Path("tests/unit"), Path("tests/cluster")

SIMULATIONS = [
    UNIT / f"test_{name}.py"
    for name in (
        "simulation", "moving", "scaling", "steering", "state_in_backends", "joins", "kept_values", "kinds_of_windows", "crashing",
        "splitting", "splitting_by_itself", "rows_and_times", "nexmark_in_simulations",
    )
]  # fmt: skip
OUTSIDE = [
    CLUSTER / f"test_{name}.py"
    for name in (
        "clones", "placement", "several_hosts", "stela_on_ray", "wire",
        "kafka_on_ray", "kafka_sink_on_ray", "kafka_chaos", "tables_on_ray",
    )
]  # fmt: skip
"""Tests that start more than the one cluster of all tests on Ray: other clusters, in programs of their own, brokers and databases."""

CONNECTORS = UNIT / "connectors"
"""Tests that wait for brokers, databases and servers now and then."""


@dataclass(frozen=True, slots=True)
class Part:
    """A command, which gives way to others by `nice`."""

    name: str
    command: list[str]
    nice: int = 0

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"


def pytest(*paths: Path, without: Sequence[Path] = ()) -> list[str]:
    """The command that runs the tests in `paths`."""
    ignored = [f"--ignore={path}" for path in without]
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "--durations=12", *map(str, paths), *ignored]


PARTS = [
    Part("outside+spark", pytest(*OUTSIDE, Path("tests/spark"))),
    Part("cluster", pytest(CLUSTER, without=OUTSIDE)),
    Part("style", ["make", f"VENV={sys.prefix}", "--no-print-directory", "--keep-going", "lint", "types"], nice=10),
    Part("connectors", pytest(CONNECTORS), nice=10),
    Part("unit", pytest(Path("tests/docstrings"), UNIT, without=[*SIMULATIONS, CONNECTORS]), nice=10),
    Part("simulations", pytest(*SIMULATIONS), nice=10),
]


def main(names: list[str]) -> int:
    """Exit code: 1 if a part has failed, 2 if there is none of a name."""
    if unknown := set(names).difference(part.name for part in PARTS):
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(part.name for part in PARTS)}")
        return 2
    os.chdir(ROOT)
    os.environ["COLUMNS"] = "200"
    if names:
        return max(subprocess.run(part.command, check=False).returncode for part in PARTS if part.name in names)
    return side_by_side()


def side_by_side() -> int:
    """Exit code: 1 if a part has failed."""
    LOGS.mkdir(exist_ok=True)
    began = time.monotonic()
    ended: dict[str, tuple[int, str]] = {}
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for part in PARTS:
            running[part.name] = start(part)
        while running:
            time.sleep(LOOK_SECONDS)
            for part in PARTS:
                if part.name in running and (code := running[part.name].poll()) is not None:
                    del running[part.name]
                    ended[part.name] = code, part.log.read_text(encoding="utf-8", errors="replace")
                    print(ended[part.name][1], end="")
                    left = f"; running: {', '.join(running)}" if running else ""
                    print(f"---- {part.name} ended after {time.monotonic() - began:.0f} s{left}", flush=True)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    print("\n".join(summary(ended)))
    return int(any(code for code, _ in ended.values()))


def start(part: Part) -> subprocess.Popen[bytes]:
    """Run a part in the background."""
    nice = [shutil.which("nice") or "nice", "-n", str(part.nice)]
    with part.log.open("wb") as log:
        return subprocess.Popen([*nice, *part.command], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
