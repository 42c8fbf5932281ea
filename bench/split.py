"""What splitting a hot key of a join is worth: rows a second and imbalance, with the key split, with whole keys balanced, and with neither.

On Ray every joined row waits, as for a call to another service: what a worker does in a second then doesn't depend on how many processors
the machine has, so the workers are limited by what they have to do and not by each other. `split_counted` counts the rows of more workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

import evenflow as ef

from ..scheduler.configs.balance import OFF, BalanceConfig
from ..scheduler.configs.job import JobConfig
from ..scheduler.configs.network import NetworkConfig
from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .sinks import DiscardSink
from .split_counted import counted

KEYS = 1_000
WAIT = 0.001
"""Seconds that a joined row waits: a worker joins 1,000 rows a second at most."""

BATCH_ROWS = 128
"""Rows that a worker gets at once: it waits an eighth of a second for them, and sees nothing else meanwhile."""

OPERATOR = "joined"
CASES = {
    "split": BalanceConfig("hotspot"),
    "whole keys": BalanceConfig("hotspot", split_hot_keys=False),
    "off": BalanceConfig(OFF),
}

NOT_MEASURED = (
    "a join whose rows cost processor time: where workers share processors, one that has less to do makes the others faster",
    "large state of the copied side: it has one row for each key here",
)


@dataclass(frozen=True, slots=True)
class Measured:
    """`rate`: rows that the join took in a second; `imbalance`, `floor`: of its workers' useful time; `splits`: keys that are split."""

    rate: float
    imbalance: float
    floor: float
    splits: int


def run(
    *,
    zipf: float,
    workers: int,
    counts: Sequence[int],
    settle: float,
    seconds: float,
    repeat: int,
    say: Callable[[str], None],
) -> Run:
    """Counts for these numbers of workers; then on Ray each case `repeat` times in turn: `settle` seconds for the balancer to act, then
    `seconds` that are measured.
    """
    cases = [case for number in counts for name in CASES for case in counted_cases(name, zipf, number, say)]
    found: dict[str, list[Measured]] = {name: [] for name in CASES}
    details: dict[str, list[dict[str, float]]] = {name: [] for name in CASES}
    for turn in range(repeat):
        for name, balance in CASES.items():
            busy = machine.busy_share()
            measured = on_ray(f"bench-split-{turn}-{name.replace(' ', '-')}", zipf, workers, balance, settle, seconds)
            found[name].append(measured)
            details[name].append({"busy_before": busy, "splits": measured.splits, "floor": measured.floor})
            say(f"{name}: {measured.rate:,.0f} rows/s, imbalance {measured.imbalance:.2f}, {measured.splits} keys split")
    cases += [case for name in CASES for case in cases_of(name, found[name], details[name]) if repeat]
    arguments = {
        "zipf": zipf,
        "workers": workers,
        "counts": list(counts),
        "settle": settle,
        "seconds": seconds,
        "repeat": repeat,
        "keys": KEYS,
        "wait": WAIT,
    }
    return record("split", arguments, cases, verdicts(cases), not_measured=NOT_MEASURED)


def counted_cases(name: str, zipf: float, workers: int, say: Callable[[str], None]) -> list[Case]:
    """What is reported of a case that is only counted."""
    found = counted(zipf, workers, CASES[name])
    say(f"{workers} workers, {name}: imbalance {found.imbalance:.2f}, capacity {found.capacity:.2f} workers, {found.splits} keys split")
    details = ({"splits": found.splits},)
    return [
        Case(f"{workers} workers counted, {name}/imbalance", "", "lower", (found.imbalance,), details),
        Case(f"{workers} workers counted, {name}/capacity", "workers", "higher", (found.capacity,), details),
    ]


def cases_of(name: str, found: Sequence[Measured], details: Sequence[dict[str, float]]) -> list[Case]:
    """What is reported of a case."""
    return [
        Case(f"{name}/rate", "rows/s", "higher", tuple(each.rate for each in found), tuple(details)),
        Case(f"{name}/imbalance", "", "lower", tuple(each.imbalance for each in found), tuple(details)),
    ]


def verdicts(cases: Sequence[Case]) -> list[Verdict]:
    """The split beside whole keys, on Ray."""
    medians = {case.name: case.median for case in cases}
    if "split/rate" not in medians:
        return []
    gain = medians["split/rate"] / medians["whole keys/rate"]
    return [
        Verdict("rows/s with the hot key split / with whole keys balanced", gain, 1.2, "higher"),
        Verdict("imbalance with the hot key split", medians["split/imbalance"], 1.2, "lower"),
    ]


def wait_for_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Wait for every row."""
    time.sleep(rows.num_rows * WAIT)
    return rows


def on_ray(name: str, zipf: float, workers: int, balance: BalanceConfig, settle: float, seconds: float) -> Measured:
    """One job: a stream of Zipf keys joins a row of each key, as fast as it can."""
    flow = ef.Dataflow(name)
    stream = flow.read(ef.generate(keys=KEYS, zipf=zipf, rows_per_batch=BATCH_ROWS)).parallelism(1)
    known = flow.read(ef.from_items([{"id": key} for key in range(KEYS)])).parallelism(1)
    joined = stream.key_by("key").join(known.key_by("id"), ef.always(), how="semi").named(OPERATOR)
    joined.map_batches(wait_for_rows).write(DiscardSink())
    job = flow.run(config=JobConfig(parallelism=workers, balance=balance, network=NetworkConfig(batch_rows=BATCH_ROWS)))
    try:
        time.sleep(settle)
        before, begun = rows_of(job), time.monotonic()
        time.sleep(seconds)
        after, ended = rows_of(job), time.monotonic()
        load = job.load(OPERATOR, windows=max(1, int(seconds)))
        plans = [report.plan for report in job.migrations() if report.plan is not None]
    finally:
        job.cancel()
        job.wait(60)
    splits = sum(len(plan.splits) - len(plan.gathers) for plan in plans)
    return Measured((after - before) / (ended - begun), load.imbalance, load.floor, splits)


def rows_of(job: ef.Job) -> int:
    """Rows that the join has taken so far."""
    return sum(figures.rows_in for figures in job.metrics() if figures.operator == OPERATOR)
