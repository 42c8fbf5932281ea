"""A live monitor of an auction house: the hottest auctions, the highest bids and the new sellers, from one stream of events
(NexMark).

    .venv/bin/python examples/nexmark.py                  in this process
    .venv/bin/python examples/nexmark.py --runtime ray    on a Ray cluster, which is started if there is none

They are shown together with each worker's load and the reactions to it: the balancer moves keys, and DS2 chooses the number of
workers. Ctrl-C, or --seconds, stops the stream; the windows that are open then are still shown.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

import evenflow as ef
from evenflow.bench.nexmark import QUERIES, Events

Row = dict[str, Any]
CONSOLE = Console()
TABLES = {
    "q5": ("Hottest auctions of 10 s", {"from": "window_start", "auction": "auction", "bids": "num"}),
    "q7": ("Highest bids of 10 s", {"from": "window_start", "auction": "auction", "by": "bidder", "price": "price"}),
    "q8": ("Joined and sold in the same 10 s", {"from": "starttime", "id": "id", "name": "name"}),
}
SHOWN = 8


def monitor(rate: float) -> tuple[ef.Dataflow, dict[str, list[Row]]]:
    """Build three queries over one stream of `rate` events per second; return them with the lists that get their results."""
    flow = ef.Dataflow("nexmark")
    events = Events.generated(flow, rate=rate, every="20ms", base_time=int(time.time() * 1000))
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for name, rows in found.items():
        QUERIES[name](events).write(ef.to_list(rows, name=name))
    return flow, found


def settings(parallelism: int) -> ef.JobConfig:
    return ef.JobConfig(
        parallelism=parallelism,
        checkpoint=ef.CheckpointConfig(interval="1s"),  # results are shown as checkpoints complete
        autoscale=ef.AutoscaleConfig(mode="act", interval="5s", max_parallelism=4),
    )


def picture(job: ef.Job, found: dict[str, list[Row]]) -> RenderableType:
    results = [_results(*TABLES[name], found[name][-SHOWN:]) for name in TABLES]
    return Group(Columns(results, padding=(0, 4)), "", _workers(job), "", *_changes(job))


def _results(title: str, columns: dict[str, str], rows: list[Row]) -> Table:
    table = Table(*columns, title=title, box=None)
    for row in reversed(rows):
        values = (row[column] for column in columns.values())
        table.add_row(*(f"{value:%H:%M:%S}" if hasattr(value, "hour") else f"{value}" for value in values))
    return table


def _workers(job: ef.Job) -> Table:
    table = Table("worker", "rows/s", "busy", "", title="Workers", box=None)
    for worker in job.metrics():
        bar = "█" * round(20 * min(worker.useful_share, 1.0))
        table.add_row(worker.worker, f"{worker.rows_in_per_second:,.0f}", f"{worker.useful_share:.0%}", f"[green]{bar}")
    return table


def _changes(job: ef.Job) -> list[str]:
    """Return the latest moves and scalings, with the part of their reasons that names the operator."""
    scalings = [(s.began_at or 0.0, s.operator, f"{s.before} to {s.after} workers", s.reason) for s in job.scalings()]
    moves = [(m.began_at or 0.0, m.operator, f"{m.keys_moved} keys moved", m.reason) for m in job.migrations()]
    lines = []
    for began, operator, what, reason in sorted(scalings + moves)[-6:]:
        why = next((part for part in reason.split("; ") if operator in part), reason.split("; ", 1)[0])
        lines.append(f"{time.strftime('%H:%M:%S', time.localtime(began))}  {operator}: {what} ({why})")
    return lines


def watch(job: ef.Job, found: dict[str, list[Row]], seconds: float) -> None:
    """Show the job until Ctrl-C, or for so many seconds, then let it end in order. A second Ctrl-C ends it at once."""
    until = time.monotonic() + seconds
    with Live(console=CONSOLE, auto_refresh=False, transient=True) as live, suppress(KeyboardInterrupt):
        while time.monotonic() < until and not job.status().state.final:
            live.update(picture(job, found), refresh=True)
            time.sleep(0.5)
    try:
        job.stop(drain=True)
        job.wait()
    except KeyboardInterrupt:
        job.cancel()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runtime", choices=("local", "ray"), default="local", help="default: %(default)s")
    arguments.add_argument("--rate", type=float, default=20_000.0, help="events per second (default: %(default)s)")
    arguments.add_argument("--parallelism", type=int, default=2, help="workers of each operator at the beginning (default: %(default)s)")
    arguments.add_argument("--seconds", type=float, default=float("inf"), help="default: until Ctrl-C")
    given = arguments.parse_args()
    flow, found = monitor(given.rate)
    job = flow.run(runtime=given.runtime, config=settings(given.parallelism))
    watch(job, found, given.seconds)
    CONSOLE.print(picture(job, found))
    CONSOLE.print(f"{sum(map(len, found.values())):,} results in {job.status().running_seconds:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
