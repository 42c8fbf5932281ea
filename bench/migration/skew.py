"""Skewed keys: how even the workers' load is compared with its floor, with balancers and without, in a closed loop of up to 1,024 workers.

The results depend on the seed and not on the machine. Rules that no job uses plan once, for the first window.
"""

from __future__ import annotations

import argparse
from statistics import mean
from typing import Any

from ...scheduler.configs.balance import OFF, BalanceConfig
from ...scheduler.configs.job import JobConfig
from ...scheduler.parts.balancing import trigger_settings
from ..baselines.consistent import Consistent
from ..baselines.two_choices import two_choices
from ..harness.benchmark import Argument, Benchmark, Say, decimals, numbers
from ..harness.record import Case, Findings, Run, Verdict
from .loop import GOOD, KEYS, SHIFT, Loop, first_snapshot, run_loop

POLICIES = (OFF, "hotspot", "lpt")
MOST_WINDOWS, MOST_OF_LPT = 5, 0.5
"""Targets: windows until the load is good, and state moved over the state that `lpt` moves."""

Loops = dict[tuple[str, float, int], Loop]
"""Loops by policy, exponent and number of workers."""


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Run the loop for every exponent, number of workers and policy."""
    cases: list[Case] = []
    loops: Loops = {}
    for workers in given.workers:
        for zipf in given.zipf:
            for policy in POLICIES:
                loop = loops[policy, zipf, workers] = run_loop(policy, zipf, workers)
                cases += loop_cases(f"{workers} workers, zipf {zipf:g}, {policy}", loop)
            for rule, imbalance in planned(zipf, workers).items():
                cases.append(Case(f"{workers} workers, zipf {zipf:g}, {rule} (plan)/imbalance", "", "lower", (imbalance,)))
            say(line_of(workers, zipf, loops))
    series = {f"{p} {z:g} {n}": [loop.imbalance.tolist(), loop.floor.tolist()] for (p, z, n), loop in loops.items()}
    return Findings(cases, verdicts(loops), series=series, facts={"keys": KEYS, "windows_per_shift": SHIFT, "balance_threshold": GOOD})


def planned(zipf: float, workers: int) -> dict[str, float]:
    """Return the imbalance that the rules plan which no job uses. `two_choices` splits keys, so the floor doesn't bind it."""
    snapshot = first_snapshot(zipf, workers)
    return {"consistent": Consistent().plan(snapshot).imbalance_after, "two_choices": two_choices(snapshot).imbalance}


def loop_cases(name: str, loop: Loop) -> list[Case]:
    """Return the measurements of a loop: means over the windows before the shifts, and sums over all windows."""
    imbalance, _ = loop.last_of_periods
    return [
        Case(f"{name}/imbalance", "", "lower", (float(imbalance.mean()),)),
        Case(f"{name}/imbalance / floor", "", "lower", (loop.ratio,)),
        Case(f"{name}/moves", "", "lower", (float(len(loop.moves)),)),
        Case(f"{name}/state moved", "bytes", "lower", (float(loop.state_bytes),)),
        Case(f"{name}/windows until good", "", "lower", tuple(float(windows) for windows in loop.settled)),
    ]


def verdicts(loops: Loops) -> list[Verdict]:
    """Judge all loops with `hotspot`."""
    settings = trigger_settings(JobConfig(balance=BalanceConfig(threshold=GOOD)))
    mine = {(zipf, workers): loop for (policy, zipf, workers), loop in loops.items() if policy == "hotspot"}
    if not mine:
        return []
    settled = [windows for loop in mine.values() for windows in loop.settled]
    uneven = [windows for windows in settled if windows]
    again = sum(loop.moved_again(settings.cooldown) for loop in mine.values())
    parts = [part_of_lpt(loop, loops["lpt", *stream]) for stream, loop in mine.items()]
    most = f"most windows from a shift until within {GOOD:g} of the floor, over {len(settled)} shifts"
    return [
        Verdict(most, max(settled), MOST_WINDOWS, "lower"),
        Verdict(f"mean of them, over the {len(uneven)} shifts that left it above", mean(uneven) if uneven else 0.0, MOST_WINDOWS, "lower"),
        Verdict("pieces moved twice within the cool-down without a shift", again, 0, "lower"),
        Verdict("largest part, over all streams, of the state that lpt moves", max(parts), MOST_OF_LPT, "lower"),
    ]


def part_of_lpt(loop: Loop, lpt: Loop) -> float:
    """Return state moved / state that `lpt` moved of the same stream; 0 if neither moved any."""
    return loop.state_bytes / lpt.state_bytes if lpt.state_bytes else float("inf") if loop.state_bytes else 0.0


def line_of(workers: int, zipf: float, loops: Loops) -> str:
    """Describe a stream in one line."""
    parts = ((policy, loops[policy, zipf, workers]) for policy in POLICIES)
    shown = ", ".join(f"{policy} {loop.ratio:.3f} ({len(loop.moves)} moves, {loop.state_bytes / 1e6:.1f} MB)" for policy, loop in parts)
    return f"{workers} workers, zipf {zipf:g}: imbalance / floor {shown}"


def draw(run: Run, figure: Any) -> None:
    """Draw imbalance over its floor, window by window, of the stream with the largest one."""
    axes = figure.subplots()
    _, zipf, workers = max(run.series, key=lambda name: max(i / f for i, f in zip(*run.series[name], strict=True))).split()
    for policy in POLICIES:
        imbalance, floor = run.series[f"{policy} {zipf} {workers}"]
        axes.plot([i / f for i, f in zip(imbalance, floor, strict=True)], label=policy)
    axes.set_title(f"{workers} workers, Zipf {zipf}, all ranks change every {SHIFT} windows")
    axes.set_xlabel("window")
    axes.set_ylabel("imbalance / floor")
    axes.legend()


BENCHMARK = Benchmark(
    "skew",
    "imbalance of Zipf-distributed keys, with balancers and without, in a closed loop of loads",
    (
        Argument("--zipf", decimals, [0.5, 0.8, 1.0, 1.2, 1.5], "exponents"),
        Argument("--workers", numbers, [16, 64, 256, 1024], "numbers of workers"),
    ),
    run,
    (
        "throughput gained by balance: a machine per worker would show it",
        "the cost of migrations, which take no time in the loop: `bench run migration` measures it",
    ),
    draw,
)
