"""Skewed keys: how even the workers' load is, beside its floor, with balancers and without, on Ray and in a closed loop of loads.

On Ray one job per stream measures itself before and after its balancer is switched on; every record costs real processor time. The loop
(`skew_simulation`) has up to a thousand workers, and changes the keys' ranks every ten windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

import evenflow as ef

from ..scheduler.configs.balance import BalanceConfig
from ..scheduler.configs.job import JobConfig
from ..scheduler.parts.balancing import trigger_settings
from . import machine
from .conditions import record
from .record import Case, Run, Verdict
from .sinks import DiscardSink
from .skew_simulation import GOOD, KEYS, SHIFT, Loop, run_loop, two_choices

POLICIES = ("off", "hotspot", "lpt")
WINDOWS = 5
OPERATOR = "stateful_map"
ROUNDS = 400
"""Of a loop that costs a record about 5 us."""

RATE = 100_000
"""Rows a second: less than the workers can take, for where the processors are full, time that a worker waits for one counts as load."""

NOT_MEASURED = (
    "throughput gained by balance: two cores are shared by all workers here; what a machine per worker would gain is not made up",
    "migrations in the loop take no time: their cost is what `bench run migration` measures",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """The operator over its newest windows."""

    imbalance: float
    floor: float
    rate: float


def run(*, zipfs: Sequence[float], ray_workers: Sequence[int], workers: Sequence[int], seconds: float, say: Callable[[str], None]) -> Run:
    """The loop for every exponent and number of workers, then the streams on Ray, `seconds` before and after balancing."""
    cases: list[Case] = []
    loops: dict[tuple[str, float, int], Loop] = {}
    for number in workers:
        for zipf in zipfs:
            for policy in POLICIES:
                loop = loops[policy, zipf, number] = run_loop(policy, zipf, number)
                cases += loop_cases(f"{number} workers, zipf {zipf:g}, {policy}", loop)
            split = two_choices(zipf, number)
            cases.append(Case(f"{number} workers, zipf {zipf:g}, two_choices (plan)/imbalance", "", "lower", (split,)))
            say(line_of(number, zipf, loops))
    for number in ray_workers:
        for zipf in zipfs:
            busy = machine.busy_share()
            before, after, moved = on_ray(zipf, number, seconds)
            name = f"Ray, {number} workers, zipf {zipf:g}"
            cases += [*stage_cases(f"{name}, off", before, busy), *stage_cases(f"{name}, hotspot", after, busy)]
            cases.append(Case(f"{name}, hotspot/keys moved", "", "lower", (float(moved),)))
            say(f"{name}: imbalance {before.imbalance:.2f} to {after.imbalance:.2f}, floor {after.floor:.2f}, {moved:,} keys moved")
    arguments = {
        "zipf": list(zipfs), "ray_workers": list(ray_workers), "workers": list(workers), "keys": KEYS, "windows_per_shift": SHIFT,
        "balance_threshold": GOOD, "seconds": seconds,
    }  # fmt: skip
    series = {f"{p} {z:g} {n}": [loop.imbalance.tolist(), loop.floor.tolist()] for (p, z, n), loop in loops.items()}
    return record("skew", arguments, cases, verdicts(loops), not_measured=NOT_MEASURED, series=series)


def loop_cases(name: str, loop: Loop) -> list[Case]:
    """What is reported of a loop: means over the windows before the shifts, sums over all."""
    imbalance, floor = loop.last_of_periods
    return [
        Case(f"{name}/imbalance", "", "lower", (float(imbalance.mean()),)),
        Case(f"{name}/imbalance / floor", "", "lower", (float((imbalance / floor).mean()),)),
        Case(f"{name}/moves", "", "lower", (float(len(loop.moves)),)),
        Case(f"{name}/state moved", "bytes", "lower", (float(loop.state_bytes),)),
        Case(f"{name}/windows until good", "", "lower", tuple(float(windows) for windows in loop.settled)),
    ]


def stage_cases(name: str, stage: Stage, busy: float) -> list[Case]:
    """What is reported of an operator on Ray."""
    details = ({"busy_before": busy},)
    return [
        Case(f"{name}/imbalance", "", "lower", (stage.imbalance,), details),
        Case(f"{name}/imbalance / floor", "", "lower", (stage.imbalance / stage.floor,), details),
        Case(f"{name}/rate", "rows/s", "higher", (stage.rate,), details),
    ]


def verdicts(loops: dict[tuple[str, float, int], Loop]) -> list[Verdict]:
    """The targets, over all loops with `hotspot`."""
    settings = trigger_settings(JobConfig(balance=BalanceConfig(threshold=GOOD)))
    mine = {(zipf, workers): loop for (policy, zipf, workers), loop in loops.items() if policy == "hotspot"}
    if not mine:
        return []
    settled = [windows for loop in mine.values() for windows in loop.settled]
    uneven = [windows for windows in settled if windows]
    again = sum(loop.moved_again(settings.cooldown) for loop in mine.values())
    parts = [part_of_lpt(loop, loops["lpt", *stream]) for stream, loop in mine.items()]
    return [
        Verdict(f"most windows from a shift until within {GOOD:g} of the floor, over {len(settled)} shifts", max(settled), 5, "lower"),
        Verdict(f"mean of them, over the {len(uneven)} shifts that left it above", mean(uneven) if uneven else 0.0, 5, "lower"),
        Verdict("pieces moved twice within the cool-down without a shift", again, 0, "lower"),
        Verdict("largest part, over all streams, of the state that lpt moves", max(parts), 0.5, "lower"),
    ]


def part_of_lpt(loop: Loop, lpt: Loop) -> float:
    """State moved / state that `lpt` moved of the same stream; 0 if neither moved any."""
    return loop.state_bytes / lpt.state_bytes if lpt.state_bytes else float("inf") if loop.state_bytes else 0.0


def line_of(workers: int, zipf: float, loops: dict[tuple[str, float, int], Loop]) -> str:
    """One line on a stream."""
    parts = []
    for policy in POLICIES:
        loop = loops[policy, zipf, workers]
        imbalance, floor = loop.last_of_periods
        parts.append(f"{policy} {(imbalance / floor).mean():.3f} ({len(loop.moves)} moves, {loop.state_bytes / 1e6:.1f} MB)")
    return f"{workers} workers, zipf {zipf:g}: imbalance / floor {', '.join(parts)}"


def costly(state: int | None, _row: dict[str, object]) -> tuple[int, None]:
    """A count per key, at a cost."""
    for _ in range(ROUNDS):
        pass
    return (state or 0) + 1, None


def on_ray(zipf: float, workers: int, seconds: float) -> tuple[Stage, Stage, int]:
    """The operator `seconds` after its start without a balancer, as long after it was switched on, and the keys moved."""
    flow = ef.Dataflow(f"bench-skew-{workers}-{zipf:g}".replace(".", "-"))
    rows = flow.read(ef.generate(rate=RATE, keys=KEYS, zipf=zipf)).parallelism(1)
    rows.key_by("key").stateful_map(costly).write(DiscardSink())
    job = flow.run(config=JobConfig(parallelism=workers, balance=BalanceConfig(threshold=GOOD)))
    time.sleep(seconds)
    before = stage_of(job)
    job.balancer(OPERATOR, "hotspot")
    time.sleep(seconds)
    after, moved = stage_of(job), sum(report.keys_moved for report in job.migrations())
    job.cancel()
    job.wait(60)
    return before, after, moved


def stage_of(job: ef.Job) -> Stage:
    """The operator now."""
    load = job.load(OPERATOR, windows=WINDOWS)
    return Stage(load.imbalance, load.floor, sum(f.rows_in_per_second for f in job.metrics() if f.operator == OPERATOR))
