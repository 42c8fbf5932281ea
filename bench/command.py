"""`evenflow bench data | run | check | compare`."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..connectors.nexmark.source import STREAMS
from ..scheduler.configs.job import LIVE
from ..terminal.console import DataTable, console
from . import (
    latency,
    memory,
    migration,
    operators,
    overhead,
    recovery,
    scaling,
    skew,
    small,
    soak,
    soak_flow,
    split,
    sql,
    start,
    throughput,
)
from .comparison import compare, other_conditions
from .conditions import RESULTS, save
from .data import default_cache, make
from .errors import BenchmarkError
from .kafka import beside
from .kafka import run as kafka
from .nexmark import ds2, moves
from .nexmark import run as nexmark
from .nexmark.check import check_query
from .nexmark.check_on_ray import Trouble, check_on_ray
from .nexmark.data import make as make_events
from .nexmark.made import Made
from .nexmark.queries import QUERIES
from .nexmark.streams import INPUTS
from .plots import plot
from .psm import run as psm
from .record import Run
from .report import case_row, difference_row, notes, verdict_row
from .stela import TOPOLOGIES
from .stela import run as stela
from .yahoo import run as yahoo

ROWS = 10_000_000


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """The four subcommands."""
    commands = parser.add_subparsers(dest="bench_command", metavar="COMMAND", required=True)
    making = commands.add_parser("data", help="make the data that benchmarks read: of throughput, with Spark, or NexMark's events")
    making.add_argument("workload", nargs="?", choices=("throughput", "nexmark"), default="throughput", help="default: %(default)s")
    _add_data(making)
    making.add_argument("--events", type=int, default=nexmark.EVENTS, help="of NexMark, all streams together (default: %(default)s)")
    _add_run(
        commands.add_parser("run", help="run a benchmark; writes JSON, Markdown and a plot").add_subparsers(dest="benchmark", required=True)
    )
    checking = commands.add_parser("check", help="compare all rows of NexMark's queries with DuckDB's")
    checking.add_argument("--queries", type=_names, default=list(QUERIES), help="default: all")
    checking.add_argument("--events", type=int, default=1_000_000, help="all streams together (default: %(default)s)")
    checking.add_argument("--seed", type=int, help="of the events, and of what is changed and killed (default: drawn, and printed)")
    checking.add_argument("--disorder", type=int, default=1, help="events in a row that come in another order (default: none)")
    checking.add_argument("--runtime", choices=("local", "ray"), default="local", help="default: %(default)s")
    checking.add_argument("--moves", action="store_true", help="on Ray: keys move and operators scale, every second")
    checking.add_argument("--kills", action="store_true", help="on Ray: workers and coordinators are killed, every few seconds")
    checking.add_argument("--rate", type=float, default=20_000.0, help="on Ray: events a second (default: %(default)s)")
    comparing = commands.add_parser("compare", help="compare two runs of one benchmark; differences within the noise are called noise")
    comparing.add_argument("before", type=Path, metavar="A.json")
    comparing.add_argument("after", type=Path, metavar="B.json")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen subcommand; a missed target is no error, wrong rows are."""
    if arguments.bench_command == "data":
        make_data(arguments)
    elif arguments.bench_command == "run":
        # So that an ended run ends the processes that it started.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        finished = run_benchmark(arguments)
        path = save(finished, arguments.results)
        plot(finished, path.with_suffix(".png"))
        show(finished, path)
    elif arguments.bench_command == "check":
        return check(arguments)
    else:
        show_comparison(Run.read(arguments.before), Run.read(arguments.after))
    return 0


def make_data(arguments: argparse.Namespace) -> None:
    """Make the data that is not there yet."""
    begun = time.monotonic()
    if arguments.workload == "nexmark":
        files = make_events(arguments.folder, arguments.events, console(stderr=True).print)
        console().print(f"{files.folder}: {', '.join(f'{files.rows(stream):,} of {stream}' for stream in STREAMS)}, as CSV and Parquet")
    else:
        for dataset in make(arguments.folder, arguments.rows):
            console().print(f"{dataset.folder}: {dataset.rows:,} rows in {len(dataset.files)} files")
    console().print(f"took {time.monotonic() - begun:.1f} s")


def check(given: argparse.Namespace) -> int:
    """Check NexMark's queries one by one; returns 1 if a row of one is wrong or missing."""
    say = console(stderr=True).print
    if given.runtime == "local" and (given.moves or given.kills):
        raise BenchmarkError("bench check: --moves and --kills change a job on Ray: add --runtime ray")
    seed = secrets.randbelow(10_000) if given.seed is None else given.seed
    say(f"seed {seed}: --seed {seed} gives the same events, changes and kills")
    table, right = DataTable("query", "rows in", "rows out", "rows/s", "missing", "wrong"), True
    with tempfile.TemporaryDirectory(prefix="nexmark-events-") as folder:
        made = Made(Path(folder), given.events, seed, given.disorder).write()
        for name in given.queries:
            if given.runtime == "ray":
                checked = check_on_ray(name, made, Trouble(given.moves, given.kills, given.rate), say)
            else:
                checked = check_query(name, made.folder, max_delay=made.max_delay)
            right = right and checked.equal
            table.row(name, *(f"{n:,.0f}" for n in (checked.rows_in, checked.rows_out, checked.rate, checked.missing, checked.wrong)))
            say(f"{name}: {'equal' if checked.equal else 'NOT EQUAL'}")
    console().print(table)
    return 0 if right else 1


def run_benchmark(given: argparse.Namespace) -> Run:
    """The benchmark of that name with its arguments."""
    say = console(stderr=True).print
    runs: dict[str, Callable[[], Run]] = {
        "throughput": lambda: throughput.run(
            tasks=given.tasks, systems=given.systems, repeat=given.repeat, rows=given.rows, cache=given.folder,
            spark_files=given.spark_files, say=say,
        ),
        "operators": lambda: operators.run(
            tasks=given.tasks, systems=given.systems, repeat=given.repeat, rows=given.rows, cache=given.folder, say=say
        ),
        "nexmark": lambda: nexmark.run(
            queries=given.queries, events=given.events, checked_events=given.checked_events, form=given.origin, systems=given.systems,
            repeat=given.repeat, cache=given.folder, say=say, bootstrap=given.bootstrap,
        ),
        "nexmark-moves": lambda: moves.run(queries=given.queries, rate=given.rate, say=say),
        "nexmark-ds2": lambda: ds2.run(queries=given.queries, starts=given.starts, say=say),
        "kafka": lambda: kafka.run(
            parts=given.parts, bootstrap=given.bootstrap, rows=given.rows, repeat=given.repeat, seconds=given.seconds,
            systems=given.systems, say=say,
        ),
        "sql": lambda: sql.run(parts=given.parts, rows=given.rows, repeat=given.repeat, say=say),
        "psm": lambda: psm.run(
            turns=given.turns, rate=given.rate, accepted=given.accepted, scalers=given.scalers, repeat=given.repeat, say=say,
            origin=given.origin, bootstrap=given.bootstrap,
        ),
        "stela": lambda: stela.run(
            topologies=given.topologies, policies=given.policies, directions=given.directions, pace=given.pace, repeat=given.repeat,
            after=given.after, say=say,
        ),
        "yahoo": lambda: yahoo.run(events=given.events, rates=given.rates, seconds=given.seconds, repeat=given.repeat, say=say),
        "latency": lambda: latency.run(rates=given.rates, seconds=given.seconds, systems=given.systems, repeat=given.repeat, say=say),
        "overhead": lambda: overhead.run(pairs=given.pairs, rows=given.rows, cache=given.folder, say=say),
        "small": lambda: small.run(parts=given.parts, repeat=given.repeat, say=say),
        "migration": lambda: migration.run(strategies=given.strategies, repeat=given.repeat, rate=given.rate, say=say),
        "skew": lambda: skew.run(
            zipfs=given.zipf, ray_workers=given.ray_workers, workers=given.workers, seconds=given.seconds, say=say
        ),
        "split": lambda: split.run(
            zipf=given.zipf, workers=given.workers, counts=given.counts, settle=given.settle, seconds=given.seconds,
            repeat=given.repeat, say=say,
        ),
        "scaling": lambda: scaling.run(parts=given.parts, policies=given.policies, say=say),
        "recovery": lambda: recovery.run(parts=given.parts, repeat=given.repeat, rows=given.rows, cache=given.folder, say=say),
        "soak": lambda: soak.run(minutes=given.minutes, jobs=given.jobs, rate=given.rate, backend=given.backend, say=say),
        "start": lambda: start.run(repeat=given.repeat, say=say),
        "memory": lambda: memory.run(minutes=given.minutes, slow_sink=given.slow_sink, say=say),
    }  # fmt: skip
    return runs[given.benchmark]()


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
    _add_folder(parser)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, default=default_cache(), help="the folder to keep it in (default: %(default)s)")


def _add_broker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bootstrap", help="a Kafka broker, on which topics are made and deleted (default: one of its own, noida-db)")


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
    _add_workloads(benchmarks)
    _add_latency(benchmarks)
    cost = benchmarks.add_parser("overhead", help="the cost of measuring load")
    cost.add_argument("--pairs", type=int, default=101, help="pairs of runs with and without (default: %(default)s)")
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
    for parser in benchmarks.choices.values():
        parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the reports (default: %(default)s)")


def _add_latency(benchmarks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    delays = benchmarks.add_parser("latency", help="p50 and p99 at fixed rates")
    delays.add_argument("--rates", type=_numbers, default=[50_000, 200_000], help="rows per second (default: 50000,200000)")
    delays.add_argument("--seconds", type=int, default=30, help="of each rate, after the warm-up (default: %(default)s)")
    delays.add_argument("--systems", type=_names, default=["evenflow"], help="of evenflow, bytewax (default: evenflow)")
    delays.add_argument("--repeat", type=int, default=1, help="iterations of each (default: %(default)s)")


def _add_small(benchmarks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    batches = benchmarks.add_parser("small", help="processor time per small batch, and of a worker with little or nothing to do")
    batches.add_argument("--parts", type=_names, default=list(small.PARTS), help=f"default: {','.join(small.PARTS)}")
    batches.add_argument("--repeat", type=int, default=3, help="runs of each case (default: %(default)s)")


def _add_workloads(benchmarks: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    _add_small(benchmarks)
    topics = benchmarks.add_parser("kafka", help="reading and writing topics, latency from topic to topic, a count beside Bytewax and Quix")
    topics.add_argument("--parts", type=_names, default=list(kafka.PARTS), help=f"default: {','.join(kafka.PARTS)}")
    topics.add_argument(
        "--systems", type=_names, default=list(beside.SYSTEMS), help=f"of the part count; default: {','.join(beside.SYSTEMS)}"
    )
    _add_broker(topics)
    topics.add_argument("--rows", type=int, default=400_000, help="default: %(default)s")
    topics.add_argument("--repeat", type=int, default=3, help="iterations of each but latency (default: %(default)s)")
    topics.add_argument("--seconds", type=int, default=20, help="of each mode of the part latency (default: %(default)s)")
    tables = benchmarks.add_parser("sql", help="rows into tables of PostgreSQL and SQLite, beside COPY and executemany alone")
    tables.add_argument("--parts", type=_names, default=list(sql.PARTS), help=f"default: {','.join(sql.PARTS)}")
    tables.add_argument("--rows", type=int, default=1_000_000, help="default: %(default)s")
    tables.add_argument("--repeat", type=int, default=3, help="iterations of each (default: %(default)s)")
    auctions = benchmarks.add_parser("nexmark", help="the queries of NexMark, beside Flink and Spark")
    auctions.add_argument("--queries", type=_names, default=list(QUERIES), help="default: all")
    auctions.add_argument("--events", type=int, default=nexmark.EVENTS, help="all streams together (default: %(default)s)")
    auctions.add_argument(
        "--checked-events", type=int, default=nexmark.CHECKED_EVENTS, help="whose results are compared with DuckDB's (default: %(default)s)"
    )
    auctions.add_argument("--from", dest="origin", choices=INPUTS, default="csv", help="what evenflow reads (default: %(default)s)")
    _add_broker(auctions)
    auctions.add_argument("--systems", type=_names, default=["evenflow"], help=f"of {', '.join(nexmark.SYSTEMS)} (default: evenflow)")
    auctions.add_argument("--repeat", type=int, default=3, help="iterations of each (default: %(default)s)")
    _add_folder(auctions)
    moving = benchmarks.add_parser("nexmark-moves", help="the latency of NexMark's results while state moves and workers come")
    moving.add_argument("--queries", type=_names, default=list(moves.OPERATORS), help="default: all of these")
    moving.add_argument("--rate", type=float, help="events a second (default: half of what each query takes)")
    steps = benchmarks.add_parser("nexmark-ds2", help="DS2's steps from too few and too many workers to enough, query by query")
    steps.add_argument("--queries", type=_names, default=list(ds2.WAITED), help="default: all of these")
    steps.add_argument("--starts", type=_names, default=list(ds2.STARTS), help="default: too few,too many")
    prices = benchmarks.add_parser("psm", help="the price search machine's queries as one job, scaled by latency and not")
    prices.add_argument("--turns", type=int, default=psm.TURNS, help="each has two rows (default: %(default)s)")
    prices.add_argument("--from", dest="origin", choices=psm.INPUTS, default="generate", help="what it reads (default: %(default)s)")
    _add_broker(prices)
    prices.add_argument("--rate", type=float, help="turns a second (default: as fast as the job takes them)")
    prices.add_argument("--accepted", default=psm.ACCEPTED, help="the latency that the auto-scaler accepts (default: %(default)s)")
    prices.add_argument("--scalers", type=_names, default=list(psm.SCALERS), help="default: all")
    prices.add_argument("--repeat", type=int, default=1, help="iterations of each (default: %(default)s)")
    nodes = benchmarks.add_parser("stela", help="Stela's topologies while a node comes or goes, by Stela and by round robin")
    nodes.add_argument("--topologies", type=_names, default=list(TOPOLOGIES), help=f"default: {','.join(TOPOLOGIES)}")
    nodes.add_argument("--policies", type=_names, default=list(stela.POLICIES), help=f"default: {','.join(stela.POLICIES)}")
    nodes.add_argument("--directions", type=_names, default=list(stela.DIRECTIONS), help=f"default: {','.join(stela.DIRECTIONS)}")
    nodes.add_argument("--pace", type=float, default=stela.PACE, help="how many times as long operators wait (default: %(default)s)")
    nodes.add_argument("--after", type=float, default=stela.AFTER, help="seconds after the node has come or gone (default: %(default)s)")
    nodes.add_argument("--repeat", type=int, default=1, help="of each run (default: %(default)s)")
    adverts = benchmarks.add_parser("yahoo", help="the Yahoo streaming benchmark: full speed, and the latency of windows at fixed rates")
    adverts.add_argument("--events", type=int, default=yahoo.EVENTS, help="at full speed (default: %(default)s)")
    adverts.add_argument("--rates", type=_numbers, default=list(yahoo.RATES), help="events a second (default: 50000,200000)")
    adverts.add_argument("--seconds", type=int, default=yahoo.SECONDS, help="of each rate (default: %(default)s)")
    adverts.add_argument("--repeat", type=int, default=3, help="runs at full speed; 0 leaves them out (default: %(default)s)")
    beginning = benchmarks.add_parser("start", help="what a process loads, and how long jobs take to start, beside empty actors of Ray")
    beginning.add_argument("--repeat", type=int, default=5, help="iterations of each (default: %(default)s)")


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
