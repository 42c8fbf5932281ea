"""`evenflow bench data | run | check | compare`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from ..connectors.nexmark.source import STREAMS
from ..terminal.console import DataTable, console
from .harness.benchmark import FOLDER
from .harness.comparison import compare, other_conditions
from .harness.conditions import RESULTS, save
from .harness.plots import save_plot
from .harness.record import Run
from .harness.report import CASES, VERDICTS, case_row, difference_row, notes, verdict_row
from .nexmark import check_command
from .nexmark.data import make as make_events
from .nexmark.run import EVENTS
from .registry import BENCHMARKS
from .throughput.data import ROWS, make


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the four subcommands."""
    commands = parser.add_subparsers(dest="bench_command", metavar="COMMAND", required=True)
    making = commands.add_parser("data", help="write the data that benchmarks read: of throughput, by Spark, or NexMark's events")
    making.add_argument("workload", nargs="?", choices=("throughput", "nexmark"), default="throughput", help="default: %(default)s")
    making.add_argument("--rows", type=int, default=ROWS, help="rows of each variant (default: %(default)s)")
    making.add_argument("--events", type=int, default=EVENTS, help="of NexMark, all streams together (default: %(default)s)")
    FOLDER.add_to(making)
    running = commands.add_parser("run", help="run a benchmark; writes JSON, Markdown and a plot")
    names = running.add_subparsers(dest="benchmark", required=True)
    for benchmark in BENCHMARKS.values():
        one = benchmark.add_to(names.add_parser(benchmark.name, help=benchmark.help))
        one.add_argument("--results", type=Path, default=RESULTS, help="folder of the reports (default: %(default)s)")
    check_command.add_arguments(commands.add_parser("check", help="compare all rows of NexMark's queries with DuckDB's"))
    comparing = commands.add_parser("compare", help="compare two runs of one benchmark; differences within the noise are called noise")
    comparing.add_argument("before", type=Path, metavar="A.json")
    comparing.add_argument("after", type=Path, metavar="B.json")


def run(given: argparse.Namespace) -> int:
    """Run the chosen subcommand. A missed target is no error, wrong rows are."""
    if given.bench_command == "check":
        return check_command.run(given)
    if given.bench_command == "data":
        make_data(given)
    elif given.bench_command == "compare":
        show_comparison(Run.read(given.before), Run.read(given.after))
    else:
        # So that a terminated run ends the processes that it started.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        benchmark = BENCHMARKS[given.benchmark]
        finished = benchmark.measure(given, console(stderr=True).print)
        path = save(finished, given.results)
        if benchmark.draw is not None:
            save_plot(finished, path.with_suffix(".png"), benchmark.draw)
        show(finished, path)
    return 0


def make_data(given: argparse.Namespace) -> None:
    """Write the data that doesn't exist yet."""
    begun = time.monotonic()
    if given.workload == "nexmark":
        files = make_events(given.folder, given.events, console(stderr=True).print)
        console().print(f"{files.folder}: {', '.join(f'{files.rows(stream):,} of {stream}' for stream in STREAMS)}, as CSV and Parquet")
    else:
        for dataset in make(given.folder, given.rows):
            console().print(f"{dataset.folder}: {dataset.rows:,} rows in {len(dataset.files)} files")
    console().print(f"took {time.monotonic() - begun:.1f} s")


def show(finished: Run, path: Path) -> None:
    """Print the tables of a run."""
    _print(CASES, map(case_row, finished.cases))
    if finished.verdicts:
        _print(VERDICTS, [verdict_row(verdict, finished) for verdict in finished.verdicts])
    for line in notes(finished):
        console().print(line)
    console().print(f"{path} (and .md)")


def show_comparison(a: Run, b: Run) -> None:
    """Print a comparison, and the other differences between the runs."""
    _print(("case", a.commit, b.commit, "ratio", "verdict"), map(difference_row, compare(a, b)))
    for line in other_conditions(a, b):
        console().print(f"differs: {line}")


def _print(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    table = DataTable(*header)
    for row in rows:
        table.row(*row)
    console().print(table)
