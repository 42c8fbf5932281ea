"""The cost of failures and checkpoints: recovery after a kill compared with other systems, throughput and latency with checkpoints.

Each part is a module of its own. Results that are compared come from one run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import product
from statistics import median
from typing import Any

from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, numbers, repeat, some_of
from ..harness.record import Case, Findings, Run, Verdict
from . import bytewax, checkpoints, kill, spark, timeline
from .output_log import KEYS, RATE, STATE_BYTES, Resumed

KINDS = {"new process": kill.Kill(), "warm spare": kill.Kill(spares=1), "new coordinator": kill.Kill(coordinator=True)}
AFTER = kill.INTERVAL / 2
"""The usual seconds between a checkpoint and the kill."""

MOST_SECONDS = {"new process": 2.0, "warm spare": 1.0}
CHANGING = 100_000
"""The keys that get rows in the part checkpoints, unless the user says otherwise."""

LEAST_RATE, MOST_P99 = 0.97, 1.5
WIDE = 10
"""The ratio of the slowest recovery to the fastest from which on the axis is logarithmic."""

HALF = 0.5
"""The part of the full speed at which latency is measured."""


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure the chosen parts."""
    found = Findings([], facts={"state_bytes": STATE_BYTES, "rate": RATE})
    for part in given.parts:
        found += PARTS[part](given, say)
    return found


def kills(given: argparse.Namespace, say: Say) -> Findings:
    """Kill a worker, without and with a warm spare, and the coordinator in turn, by number of keys and by time since the checkpoint."""
    measured: dict[tuple[str, int, int, float], list[kill.Recovery]] = {}
    details: list[dict[str, Any]] = []
    for number, keys, most, after, kind in product(range(given.repeat), given.keys, given.changing or [None], given.after, KINDS):
        changing = min(keys, most or keys)
        details.append({"busy_before": machine.busy_share()})
        job = f"{kind.replace(' ', '-')}-{keys}-{changing}-{after:g}-{number}"
        found = kill.measure(job, KINDS[kind], keys, changing, after)
        measured.setdefault((kind, keys, changing, after), []).append(found)
        resumed = found.resumed
        say(f"{_case(kind, keys, changing, after)}: first output after {resumed.first:.2f} s, new output after {resumed.new:.2f} s")
        say(f"  milliseconds: {timeline.line(found.phases)}")
    found_all = Findings([])
    for (kind, keys, changing, after), recoveries in measured.items():
        name, times = _case(kind, keys, changing, after), [recovery.resumed for recovery in recoveries]
        found_all += resumed_findings(name, times, details)
        found_all += Findings(timeline.cases(name, [recovery.phases for recovery in recoveries]))
        if kind in MOST_SECONDS:
            new = median(found.new for found in times)
            found_all += Findings([], [Verdict(f"{name}: seconds from the kill to new output", new, MOST_SECONDS[kind], "lower")])
    return found_all


def _case(kind: str, keys: int, changing: int, after: float) -> str:
    """Return the name of the case: the kind of kill, and what is unusual.

    >>> _case("warm spare", KEYS, KEYS, AFTER), _case("warm spare", 10 * KEYS, KEYS // 10, 1.0)
    ('evenflow, warm spare', 'evenflow, warm spare, 10 M keys, 0.1 M changing, 1 s after a checkpoint')
    """
    state = f", {keys / 10**6:g} M keys" if keys != KEYS else ""
    state += f", {changing / 10**6:g} M changing" if changing != keys else ""
    return f"evenflow, {kind}{state}" + (f", {after:g} s after a checkpoint" if after != AFTER else "")


def kill_spark(_: argparse.Namespace, say: Say) -> Findings:
    """Kill Spark and start it again, once."""
    busy = machine.busy_share()
    found = spark.measure()
    say(f"Spark: session after {found.session:.1f} s, first output after {found.resumed.first:.1f} s, new after {found.resumed.new:.1f} s")
    session = Case("Spark/session up", "s", "lower", (found.session,))
    return Findings([session]) + resumed_findings("Spark", [found.resumed], [{"busy_before": busy, "session": found.session}])


def kill_bytewax(_: argparse.Namespace, say: Say) -> Findings:
    """Stop Bytewax and resume it, once. Without output in time, the waiting time is a lower bound."""
    busy = machine.busy_share()
    found = bytewax.measure()
    if found is None:
        least = bytewax.PATIENCE
        case = Case("Bytewax/new output, at least", "s", "lower", (least,), ({"busy_before": busy},))
        return Findings([case], checks=[f"Bytewax wrote nothing within {least:.0f} s"], series={"Bytewax (at least)": [least, least]})
    say(f"Bytewax: first output after {found.first:.1f} s, new after {found.new:.1f} s")
    return resumed_findings("Bytewax", [found], [{"busy_before": busy}])


def pairs_of_phases(given: argparse.Namespace, say: Say) -> Findings:
    """Measure pairs of phases at full speed, then at half of it, by number of keys and of those that get rows."""
    cases: list[Case] = []
    verdicts: list[Verdict] = []
    for keys, most in product(given.keys, given.changing or [CHANGING]):
        changing = min(keys, most)
        full = checkpoints.measure(keys, changing, None, given.pairs)
        half = HALF * median(pair.without.rate for pair in full)
        paced = checkpoints.measure(keys, changing, half, given.pairs)
        rate, latency = checkpoints.kept_rate(full), checkpoints.latency_ratio(paced)
        name = f"{keys:,} keys, {changing:,} changing"
        say(f"{name}: {rate:.3f} of the throughput, {latency:.2f} times the p99, at full speed and at {half:,.0f} rows/s")
        for speed, pairs in (("full", full), ("half", paced)):
            cases += checkpoints.phase_cases(f"{keys / 10**6:g} M keys, {changing / 10**6:g} M changing, {speed} speed", pairs)
        verdicts.append(Verdict(f"{name}: throughput with a checkpoint every 10 s / without", rate, LEAST_RATE, "higher"))
        verdicts.append(Verdict(f"{name}: p99 with a checkpoint every 10 s / without", latency, MOST_P99, "lower"))
    return Findings(cases, verdicts)


PARTS: dict[str, Callable[[argparse.Namespace, Say], Findings]] = {
    "kill": kills, "spark": kill_spark, "bytewax": kill_bytewax, "checkpoints": pairs_of_phases,
}  # fmt: skip


def resumed_findings(name: str, times: Sequence[Resumed], details: Sequence[dict[str, Any]]) -> Findings:
    """Return both times of a system, and check the counts after the kills."""
    wrong = sum(found.wrong for found in times)
    check = f"{name}: all counts after the kill are those of an undisturbed run" if not wrong else f"{name}: {wrong:,} counts are wrong"
    first, new = tuple(found.first for found in times), tuple(found.new for found in times)
    cases = [Case(f"{name}/{what} output", "s", "lower", values, tuple(details)) for what, values in (("first", first), ("new", new))]
    return Findings(cases, checks=[check], series={name: [median(first), median(new)]})


def draw(run: Run, figure: Any) -> None:
    """Draw the seconds from the kill to the first output and to the first new one, system by system, and evenflow's phases."""
    names = list(run.series)[::-1]
    if not names:
        return
    phases = timeline.medians_of(run)
    axes, below = figure.subplots(2, height_ratios=(1, 1.4)) if phases else (figure.subplots(), None)
    firsts, news = ([run.series[name][i] for name in names] for i in (0, 1))
    axes.barh(names, news, color="tab:blue", label="new output")
    axes.barh(names, firsts, color="tab:cyan", height=0.4, label="first output")
    for place, seconds in enumerate(news):
        axes.annotate(f"{seconds:.1f} s", (seconds, place), xytext=(3, 0), textcoords="offset points", va="center")
    if max(news) > WIDE * min(news):
        axes.set_xscale("log")
    axes.set_xlabel(f"seconds from the kill; {KEYS:,} keys, {AFTER:g} s after a checkpoint, unless stated")
    axes.margins(x=0.15)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, fontsize="small", frameon=False)
    if below is not None:
        timeline.draw(phases, below)


BENCHMARK = Benchmark(
    "recovery",
    "the cost of kills and of checkpoints",
    (
        Argument("--parts", some_of(PARTS), list(PARTS), "what to measure"),
        repeat(2, "kills of each kind"),
        Argument("--keys", numbers, [KEYS], "keys of the parts kill and checkpoints"),
        Argument("--after", numbers, [int(AFTER)], "seconds between a checkpoint and the kill"),
        Argument(
            "--changing",
            numbers,
            [],
            f"keys that get rows after the first of each; unless given, all, {CHANGING:,} in the part checkpoints",
        ),
        Argument("--pairs", int, 4, "pairs of phases, with a checkpoint and without"),
    ),
    run,
    (
        "a lost node: processes are killed here, and all of them share one machine and one disk",
        "Bytewax at the rate of the others: with a snapshot every 10 s it can't keep up with it",
        "state on disk",
    ),
    draw,
)
