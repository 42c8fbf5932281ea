"""`evenflow bench check`: compares all rows of NexMark's queries with DuckDB's, locally or on Ray."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from ...terminal.console import DataTable, console
from ..harness.benchmark import some_of
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from .check import Checked, check_query
from .check_on_ray import Trouble, check_on_ray
from .made import Made
from .queries import QUERIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--queries", type=some_of(QUERIES), default=list(QUERIES), help="default: all")
    parser.add_argument("--events", type=int, default=1_000_000, help="all streams together (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of the events, changes and kills (default: drawn, and printed)")
    parser.add_argument("--disorder", type=int, default=1, help="events in a row that come in another order (default: none)")
    parser.add_argument("--runtime", choices=("local", "ray"), default="local", help="default: %(default)s")
    parser.add_argument("--moves", action="store_true", help="on Ray: keys move and operators scale, every second")
    parser.add_argument("--kills", action="store_true", help="on Ray: workers and coordinators are killed, every few seconds")
    parser.add_argument("--rate", type=float, default=20_000.0, help="on Ray: events a second (default: %(default)s)")


def run(given: argparse.Namespace) -> int:
    """Check the queries one by one; returns 1 if a row of one is wrong or missing."""
    say = console(stderr=True).print
    if given.runtime == "local" and (given.moves or given.kills):
        raise BenchmarkError("bench check: --moves and --kills change a job on Ray: add --runtime ray")
    seed = secrets.randbelow(10_000) if given.seed is None else given.seed
    say(f"seed {seed}: --seed {seed} gives the same events, changes and kills")
    found: list[Checked] = []
    with scratch("nexmark-events") as folder:
        made = Made(Path(folder), given.events, seed, given.disorder).write()
        for name in given.queries:
            if given.runtime == "ray":
                checked = check_on_ray(name, made, Trouble(given.moves, given.kills, given.rate), say)
            else:
                checked = check_query(name, made.folder, max_delay=made.max_delay)
            found.append(checked)
            say(f"{name}: {'equal' if checked.equal else 'NOT EQUAL'}")
    table = DataTable("query", "rows in", "rows out", "rows/s", "missing", "wrong")
    for each in found:
        table.row(each.query, *(f"{n:,.0f}" for n in (each.rows_in, each.rows_out, each.rate, each.missing, each.wrong)))
    console().print(table)
    return 0 if all(each.equal for each in found) else 1
