"""`evenflow bench data | run | compare`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from ..drawing.terminal import DataTable, console
from ..scheduler.config import LIVE
from . import latency, memory, migration, operators, overhead, recovery, scaling, skew, soak, soak_flow, split, throughput
from .comparison import compare, other_conditions
from .conditions import RESULTS, save
from .data import default_cache, make
from .plots import plot
from .record import Run
from .report import case_row, difference_row, notes, verdict_row

ROWS = 10_000_000


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """The three subcommands."""
    commands = parser.add_subparsers(dest="bench_command", metavar="COMMAND", required=True)
    _add_data(commands.add_parser("data", help="make the data that the throughput benchmarks read, with Spark"))
    _add_run(
        commands.add_parser("run", help="run a benchmark; writes JSON, Markdown and a plot").add_subparsers(dest="benchmark", required=True)
    )
    comparing = commands.add_parser("compare", help="compare two runs of one benchmark; differences within the noise are called noise")
    comparing.add_argument("before", type=Path, metavar="A.json")
    comparing.add_argument("after", type=Path, metavar="B.json")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen subcommand; a missed target is no error."""
    if arguments.bench_command == "data":
        make_data(arguments)
    elif arguments.bench_command == "run":
        # So that an ended run ends the processes that it started.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        finished = run_benchmark(arguments)
        path = save(finished, arguments.results)
        plot(finished, path.with_suffix(".png"))
        show(finished, path)
    else:
        show_comparison(Run.read(arguments.before), Run.read(arguments.after))
    return 0


def make_data(arguments: argparse.Namespace) -> None:
    """Make the data that is not there yet."""
    begun = time.monotonic()
    for dataset in make(arguments.folder, arguments.rows):
        console().print(f"{dataset.folder}: {dataset.rows:,} rows in {len(dataset.files)} files")
    console().print(f"took {time.monotonic() - begun:.1f} s")


def run_benchmark(arguments: argparse.Namespace) -> Run:  # noqa: C901, PLR0911 -- a line for each benchmark
    """The benchmark of that name with its arguments."""
    say = console(stderr=True).print
    if arguments.benchmark == "throughput":
        return throughput.run(
            tasks=arguments.tasks, systems=arguments.systems, repeat=arguments.repeat, rows=arguments.rows, cache=arguments.folder,
            spark_files=arguments.spark_files, say=say,
        )  # fmt: skip
    if arguments.benchmark == "operators":
        return operators.run(
            tasks=arguments.tasks, systems=arguments.systems, repeat=arguments.repeat, rows=arguments.rows, cache=arguments.folder, say=say
        )  # fmt: skip
    if arguments.benchmark == "latency":
        return latency.run(rates=arguments.rates, seconds=arguments.seconds, say=say)
    if arguments.benchmark == "overhead":
        return overhead.run(pairs=arguments.pairs, rows=arguments.rows, cache=arguments.folder, say=say)
    if arguments.benchmark == "migration":
        return migration.run(strategies=arguments.strategies, repeat=arguments.repeat, rate=arguments.rate, say=say)
    if arguments.benchmark == "skew":
        return skew.run(
            zipfs=arguments.zipf, ray_workers=arguments.ray_workers, workers=arguments.workers, seconds=arguments.seconds, say=say
        )  # fmt: skip
    if arguments.benchmark == "split":
        return split.run(
            zipf=arguments.zipf, workers=arguments.workers, counts=arguments.counts, settle=arguments.settle, seconds=arguments.seconds,
            repeat=arguments.repeat, say=say,
        )  # fmt: skip
    if arguments.benchmark == "scaling":
        return scaling.run(parts=arguments.parts, policies=arguments.policies, say=say)
    if arguments.benchmark == "recovery":
        return recovery.run(parts=arguments.parts, repeat=arguments.repeat, rows=arguments.rows, cache=arguments.folder, say=say)
    if arguments.benchmark == "soak":
        return soak.run(minutes=arguments.minutes, jobs=arguments.jobs, rate=arguments.rate, backend=arguments.backend, say=say)
    return memory.run(minutes=arguments.minutes, slow_sink=arguments.slow_sink, say=say)


def show(finished: Run, path: Path) -> None:
    """Tables of a run on the terminal."""
    _print(("case", "median", "spread", "iterations"), [case_row(case) for case in finished.cases])
    if finished.verdicts:
        _print(("target", "asked for", "measured", ""), [verdict_row(verdict, finished) for verdict in finished.verdicts])
    for line in notes(finished):
        console().print(line)
    console().print(f"{path} (and .md)")


def show_comparison(a: Run, b: Run) -> None:
    """A comparison on the terminal, and what else differs between the runs."""
    _print(("case", a.commit, b.commit, "ratio", "verdict"), [difference_row(difference) for difference in compare(a, b)])
    for line in other_conditions(a, b):
        console().print(f"differs: {line}")


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each variant (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=default_cache(), help="the folder to keep it in (default: %(default)s)")


def _add_run(benchmarks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rates = benchmarks.add_parser("throughput", help="rows per second beside other systems")
    rates.add_argument("--tasks", type=_names, default=list(throughput.SYSTEMS_OF), help="default: all")
    rates.add_argument("--systems", type=_names, default=list(throughput.SYSTEMS), help="default: all")
    rates.add_argument("--repeat", type=int, default=3, help="iterations of each (default: %(default)s)")
    rates.add_argument(
        "--spark-files", type=int, default=10, help="Spark's maxFilesPerTrigger; all 10 is its fastest (default: %(default)s)"
    )
    _add_data(rates)
    kinds = benchmarks.add_parser("operators", help="joins, sessions and top rows beside Flink and Spark")
    kinds.add_argument("--tasks", type=_names, default=list(operators.SYSTEMS_OF), help="default: all")
    kinds.add_argument("--systems", type=_names, default=list(operators.SYSTEMS), help="default: all")
    kinds.add_argument("--repeat", type=int, default=3, help="iterations of each (default: %(default)s)")
    _add_data(kinds)
    delays = benchmarks.add_parser("latency", help="p50 and p99 at fixed rates")
    delays.add_argument("--rates", type=_numbers, default=[50_000, 200_000], help="rows per second (default: 50000,200000)")
    delays.add_argument("--seconds", type=int, default=30, help="of each rate, after the warm-up (default: %(default)s)")
    cost = benchmarks.add_parser("overhead", help="the cost of measuring load")
    cost.add_argument("--pairs", type=int, default=7, help="pairs of runs with and without (default: %(default)s)")
    _add_data(cost)
    leaks = benchmarks.add_parser("memory", help="resident memory at full speed")
    leaks.add_argument("--minutes", type=float, default=10.0, help="default: %(default)s")
    leaks.add_argument("--slow-sink", action="store_true", help="with a sink that takes a hundredth of the rows offered")
    failures = benchmarks.add_parser("recovery", help="the cost of kills, checkpoints and state on disk")
    failures.add_argument("--parts", type=_names, default=list(recovery.PARTS), help=f"default: {','.join(recovery.PARTS)}")
    failures.add_argument("--repeat", type=int, default=2, help="kills of each kind (default: %(default)s)")
    _add_data(failures)
    moves = benchmarks.add_parser("migration", help="latency and memory while a quarter of the state moves, by strategy")
    moves.add_argument("--strategies", type=_names, default=list(LIVE), help=f"beside restart; default: {','.join(LIVE)}")
    moves.add_argument("--repeat", type=int, default=1, help="migrations of each (default: %(default)s)")
    moves.add_argument("--rate", type=int, help="rows per second (default: half of the job's capacity)")
    skews = benchmarks.add_parser("skew", help="imbalance of Zipf-distributed keys, with and without balancing")
    skews.add_argument("--zipf", type=_decimals, default=[0.5, 0.8, 1.0, 1.2, 1.5], help="exponents (default: 0.5,0.8,1.0,1.2,1.5)")
    skews.add_argument("--ray-workers", type=_numbers, default=[2, 4], help="default: 2,4")
    skews.add_argument("--workers", type=_numbers, default=[16, 64, 256, 1024], help="in the loop (default: 16,64,256,1024)")
    skews.add_argument("--seconds", type=float, default=15.0, help="on Ray, before and after balancing (default: %(default)s)")
    parts = benchmarks.add_parser("split", help="a join of Zipf-distributed keys with its hot key split, with whole keys, and unbalanced")
    parts.add_argument("--zipf", type=float, default=1.5, help="exponent (default: %(default)s)")
    parts.add_argument("--workers", type=int, default=4, help="of the join on Ray (default: %(default)s)")
    parts.add_argument("--counts", type=_numbers, default=[4, 16, 64], help="workers whose rows are only counted (default: 4,16,64)")
    parts.add_argument("--settle", type=float, default=20.0, help="seconds for the balancer to act (default: %(default)s)")
    parts.add_argument("--seconds", type=float, default=15.0, help="that are measured (default: %(default)s)")
    parts.add_argument("--repeat", type=int, default=3, help="of each case on Ray; 0 leaves it out (default: %(default)s)")
    elastic = benchmarks.add_parser("scaling", help="every scaling policy while demand doubles and halves, in a model and on Ray")
    elastic.add_argument("--parts", type=_names, default=list(scaling.PARTS), help=f"default: {','.join(scaling.PARTS)}")
    elastic.add_argument("--policies", type=_names, default=["ds2", "threshold"], help="on Ray; default: ds2,threshold")
    long = benchmarks.add_parser("soak", help="a long job with keys that come and go, and many jobs in one driver: does anything grow?")
    long.add_argument("--minutes", type=float, default=60.0, help="of the long job; 0 leaves it out (default: %(default)s)")
    long.add_argument("--jobs", type=int, default=50, help="on either runtime; 0 leaves them out (default: %(default)s)")
    long.add_argument("--rate", type=float, default=soak_flow.RATE, help="rows per second of the long job (default: %(default)s)")
    long.add_argument("--backend", default="memory", help="where the long job's state lies (default: %(default)s)")
    for parser in (rates, kinds, delays, cost, leaks, failures, moves, skews, parts, elastic, long):
        parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the reports (default: %(default)s)")


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")] if text else []


def _decimals(text: str) -> list[float]:
    return [float(word) for word in text.split(",")] if text else []


def _print(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = DataTable(*header)
    for row in rows:
        table.row(*row)
    console().print(table)
