"""The README's five numbers with those of other systems: a quarter of an hour of the benchmarks that have them, in one run.

It makes the data and installs Flink first. Each part is a benchmark with fewer rows and iterations than its own command has.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

from ..harness.benchmark import FOLDER, Argument, Benchmark, Say, some_of
from ..harness.record import Findings
from ..nexmark import moves
from ..nexmark import run as nexmark
from ..recovery import run as recovery
from ..throughput import run as throughput
from ..throughput.data import ROWS, make
from .numbers import numbers

EVENTS, CHECKED_EVENTS = 2_000_000, 200_000
"""NexMark's events of the measured and of the checked run."""

QUERIES, MOVED = "q1,q4,q5,q8", "q5"


@dataclass(frozen=True, slots=True)
class Part:
    """A benchmark and the words of its command; `rows`, `events`: words with the numbers given, if it has them."""

    benchmark: Benchmark
    words: tuple[str, ...]
    rows: bool = False
    events: bool = False

    def run(self, given: argparse.Namespace, say: Say) -> Findings:
        """Run the benchmark."""
        words = [*self.words]
        if self.rows:
            make(given.folder, given.rows)
            words += ["--rows", str(given.rows), "--folder", str(given.folder)]
        if self.events:
            words += ["--events", str(given.events), "--checked-events", str(min(given.events, CHECKED_EVENTS))]
            words += ["--folder", str(given.folder)]
        return self.benchmark.run(self.benchmark.parse(words), say)


PARTS = {
    "throughput": Part(
        throughput.BENCHMARK, ("--tasks", "t1,t2", "--systems", "evenflow,spark,duckdb,bytewax,loop", "--repeat", "2"), rows=True
    ),
    "nexmark": Part(nexmark.BENCHMARK, ("--queries", QUERIES, "--systems", "evenflow,flink", "--repeat", "2"), events=True),
    "moves": Part(moves.BENCHMARK, ("--queries", MOVED)),
    "recovery": Part(recovery.BENCHMARK, ("--parts", "kill,spark", "--repeat", "1")),
}


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Run the parts one after the other. Raises ConnectorError or BenchmarkError if a system fails or results differ."""
    found = Findings([])
    for place, name in enumerate(given.parts, 1):
        say(f"part {place} of {len(given.parts)}: {name}")
        begun = time.monotonic()
        part = PARTS[name].run(given, say)
        # The verdicts are those of the whole benchmarks: they need more rows and iterations than these.
        found += Findings(part.cases, checks=part.checks, facts={f"{name}_seconds": round(time.monotonic() - begun)})
    rows = [f"{row.measured}: {row.evenflow}; {row.others}" for row in numbers(found.cases)]
    return found + Findings([], checks=rows)


BENCHMARK = Benchmark(
    "compare",
    "the README's five numbers with other systems, in 15 minutes",
    (
        Argument("--parts", some_of(PARTS), list(PARTS), "what to measure"),
        Argument("--rows", int, ROWS, "rows of the part throughput"),
        Argument("--events", int, EVENTS, "events of the part nexmark"),
        FOLDER,
    ),
    run,
    (
        "more than one machine; more cores than this one has",
        "starting: processes, Ray, the JVM, except in recovery",
        "checkpoints in the parts throughput and nexmark",
    ),
)
