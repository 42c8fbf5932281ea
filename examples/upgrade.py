"""A job whose code is exchanged twice while it runs: a better version, and one with a bug that its canary catches.

    .venv/bin/python examples/upgrade.py

It starts Ray on this machine if there is no cluster. The job adds up the sales of each shop. Version 2 takes off a discount, and
replaces version 1 worker by worker. Version 3 fails for expensive sales. It gets a part of the shops first, and these go back to
version 2. At the end every sale is in the results once, or among the refused ones, though the stream never stopped.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evenflow as ef

Row = dict[str, Any]

RATE, SHOPS = 400, 60
"""Sales per second, and shops."""

DISCOUNT, EXPENSIVE = 0.1, 900.0
"""The share that version 2 takes off, and the price from which version 3 fails."""


def full_price(row: Row) -> float:
    """Return the price of a sale: version 1."""
    return float(row["value"])


def discounted(row: Row) -> float:
    """Return the price of a sale less the discount: version 2."""
    return float(row["value"]) * (1 - DISCOUNT)


def with_bonus(row: Row) -> float:
    """Return the price less the discount and a bonus: version 3. Sales have no bonus, but that shows only for expensive ones."""
    return discounted(row) - (row["bonus"] if row["value"] >= EXPENSIVE else 0.0)


def shops(price: Callable[[Row], float], version: int, folder: Path) -> ef.Dataflow:
    """Build a version of the program; all have the same operators with the same names and states."""

    def add(total: float | None, row: Row) -> tuple[float, Row]:
        total = (total or 0.0) + price(row)
        return total, {"shop": row["key"], "sale": row["seq"], "total": total, "version": version}

    flow = ef.Dataflow("shops")
    sales = flow.read(ef.generate(rate=RATE, every="20ms", keys=SHOPS, string_keys=True, name="sales")).parallelism(1)
    totals = sales.key_by("key").stateful_map(add, on_error="dead_letter").named("totals")
    totals.write(ef.write_json(folder / "totals", name="write_totals"))
    totals.dead_letters.write(ef.write_json(folder / "refused", name="write_refused"))
    return flow


def rows_in(folder: Path) -> list[Row]:
    """Return the rows of a folder of JSON files."""
    return [json.loads(line) for path in sorted(folder.rglob("*.json")) for line in path.read_text().splitlines()]


def wait_for_rows(folder: Path) -> None:
    """Wait for the first committed rows."""
    while not rows_in(folder):
        time.sleep(0.1)


def upgrade(job: ef.Job, flow: ef.Dataflow) -> None:
    """Exchange the job's code, and print what is exchanged, the steps, and the outcome."""
    print(job.plan_upgrade(flow), flush=True)
    steps: list[str] = []

    def show(report: ef.UpgradeReport) -> None:
        if report.state.value not in steps:
            steps.append(report.state.value)
            print(f"  {report.state.value}", flush=True)

    try:
        report = job.upgrade(flow, canary=0.1, watch="3s", seen=show)
    except ef.UpgradeRolledBackError as error:
        print(f"The new code was taken back: {error}\n", flush=True)
    else:
        print(f"{report}\n", flush=True)


def run(folder: Path) -> bool:
    """Run the job, and exchange its code twice. Returns True if every sale counted once."""
    saved = ef.CheckpointConfig(str(folder / "checkpoints"), interval="1s")
    config = ef.JobConfig(parallelism=2, checkpoint=saved, metrics=ef.MetricsConfig(window="500ms"))
    job = shops(full_price, 1, folder).run(config=config)
    wait_for_rows(folder / "totals")
    upgrade(job, shops(discounted, 2, folder))
    upgrade(job, shops(with_bonus, 3, folder))
    print(job.upgrades(), flush=True)
    job.stop()
    job.wait()

    totals, refused = rows_in(folder / "totals"), rows_in(folder / "refused")
    sales = sorted([row["sale"] for row in totals] + [json.loads(row["record"])["seq"] for row in refused])
    versions = Counter(row["version"] for row in totals)
    told = ", ".join(f"{count:,} by version {version}" for version, count in sorted(versions.items()))
    print(f"{len(sales):,} sales: {told}; {len(refused)} refused, all by version 3")
    once = sales == list(range(len(sales)))
    print("Each sale is there once." if once else "Sales are missing or there twice.")
    return once


def main() -> int:
    """Run the example; return the exit code: 0 if every sale counted once."""
    with tempfile.TemporaryDirectory(prefix="shops-", ignore_cleanup_errors=True) as folder:
        return 0 if run(Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
