"""The cost of failures and checkpoints: recovery after a kill beside other systems, throughput and latency with checkpoints, LMDB.

Each part is a module of its own (`recovery_kill`, `recovery_bytewax`, `recovery_spark`, `recovery_checkpoints`, `recovery_lmdb`); results
that are compared come from one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ..state.errors import EvenflowError
from . import machine, recovery_bytewax, recovery_checkpoints, recovery_lmdb, recovery_spark
from .conditions import record
from .data import find
from .output_log import KEYS, RATE, STATE_BYTES, Resumed
from .record import Case, Run, Verdict
from .recovery_checkpoints import Pair
from .recovery_kill import INTERVAL, measure
from .throughput import check_names, check_results

PARTS = ("kill", "spark", "bytewax", "checkpoints", "lmdb")
SIZES = (1_000_000, 10_000_000)
PAIRS = 4
KINDS: dict[str, dict[str, Any]] = {"new process": {}, "warm spare": {"worker": {"warm_spares": 1}}}
MOST_SECONDS = {"new process": 2.0, "warm spare": 1.0}
LEAST_RATE, MOST_P99 = 0.97, 1.5
NOT_MEASURED = (
    "a lost node: processes are killed here, and all of them share one machine and one disk",
    "Bytewax at the rate of the others: with a snapshot every 10 s it can't keep up with it",
    "LMDB with less page cache than state: its files may stay in unused memory",
)

Say = Callable[[str], None]
Found = tuple[list[Case], list[Verdict], list[str]]
"""The results of a part: cases, verdicts, checks."""


def run(*, parts: Sequence[str], repeat: int, rows: int, cache: Path, say: Say) -> Run:
    """The parts in the order of `PARTS`. Raises FlowError for an unknown one, ConnectorError for `lmdb` without data."""
    check_names("part", parts, PARTS)
    if "lmdb" in parts:
        find(cache, "integers", rows)
    cases: list[Case] = []
    verdicts: list[Verdict] = []
    checks: list[str] = []
    series: dict[str, Any] = {}
    measures: dict[str, Callable[[], Found]] = {
        "kill": lambda: kills(repeat, say, series),
        "spark": lambda: spark(say, series),
        "bytewax": lambda: bytewax(say, series),
        "checkpoints": lambda: checkpoints(say),
        "lmdb": lambda: lmdb(rows, cache, say),
    }
    for part in (name for name in PARTS if name in parts):
        found = measures[part]()
        cases += found[0]
        verdicts += found[1]
        checks += found[2]
    arguments = {
        "parts": list(parts), "repeat": repeat, "keys": KEYS, "state_bytes": STATE_BYTES, "rate": RATE, "interval_seconds": INTERVAL,
        "checkpoint_keys": list(SIZES), "pairs": PAIRS, "rows": rows,
    }  # fmt: skip
    return record("recovery", arguments, cases, verdicts, checks=checks, not_measured=NOT_MEASURED, series=series)


def kills(repeat: int, say: Say, series: dict[str, Any]) -> Found:
    """A worker killed, with and without a warm spare in turn."""
    measured: dict[str, list[Resumed]] = {kind: [] for kind in KINDS}
    details: list[dict[str, Any]] = []
    for number in range(repeat):
        for kind, settings in KINDS.items():
            details.append({"busy_before": machine.busy_share()})
            measured[kind].append(found := measure(f"{kind.replace(' ', '-')}-{number}", settings))
            say(f"evenflow, {kind}: first output after {found.first:.2f} s, new output after {found.news:.2f} s")
    cases, verdicts = [], []
    for kind, times in measured.items():
        cases += resumed_cases(f"evenflow, {kind}", times, details)
        news = median(found.news for found in times)
        verdicts.append(Verdict(f"seconds from the kill to new output, {kind}", news, MOST_SECONDS[kind], "lower"))
        series[f"evenflow, {kind}"] = [median(found.first for found in times), news]
    return cases, verdicts, [counts_check("evenflow", [found for times in measured.values() for found in times])]


def spark(say: Say, series: dict[str, Any]) -> Found:
    """Spark killed and started again, once."""
    busy = machine.busy_share()
    found = recovery_spark.measure()
    say(f"Spark: session after {found.session:.1f} s, first output after {found.resumed.first:.1f} s, new after {found.resumed.news:.1f} s")
    details = [{"busy_before": busy, "session": found.session}]
    series["Spark"] = [found.resumed.first, found.resumed.news]
    session = Case("Spark/session up", "s", "lower", (found.session,))
    return [session, *resumed_cases("Spark", [found.resumed], details)], [], [counts_check("Spark", [found.resumed])]


def bytewax(say: Say, series: dict[str, Any]) -> Found:
    """Bytewax stopped and resumed, once; without an answer in time, the waiting time is a lower bound."""
    busy = machine.busy_share()
    found = recovery_bytewax.measure()
    if found is None:
        least = recovery_bytewax.PATIENCE
        say(f"Bytewax: nothing within {least:.0f} s")
        series["Bytewax (at least)"] = [least, least]
        case = Case("Bytewax/new output, at least", "s", "lower", (least,), ({"busy_before": busy},))
        return [case], [], [f"Bytewax gave no output within {least:.0f} s of being started again"]
    say(f"Bytewax: first output after {found.first:.1f} s, new after {found.news:.1f} s")
    series["Bytewax"] = [found.first, found.news]
    return resumed_cases("Bytewax", [found], [{"busy_before": busy}]), [], [counts_check("Bytewax", [found])]


def checkpoints(say: Say) -> Found:
    """Pairs of phases at full speed, then at half of it, by number of keys."""
    cases: list[Case] = []
    verdicts: list[Verdict] = []
    for keys in SIZES:
        full = recovery_checkpoints.measure(keys, None, PAIRS)
        half = recovery_checkpoints.HALF * median(pair.without.rate for pair in full)
        paced = recovery_checkpoints.measure(keys, half, PAIRS)
        rate, latency = recovery_checkpoints.kept_rate(full), recovery_checkpoints.latency_ratio(paced)
        say(f"{keys:,} keys: {rate:.3f} of the throughput, {latency:.2f} times the p99, at full speed and at {half:,.0f} rows/s")
        cases += [*phase_cases(f"{keys // 10**6} M keys, full speed", full), *phase_cases(f"{keys // 10**6} M keys, half speed", paced)]
        verdicts.append(Verdict(f"{keys:,} keys: throughput with a checkpoint every 10 s / without", rate, LEAST_RATE, "higher"))
        verdicts.append(Verdict(f"{keys:,} keys: p99 with a checkpoint every 10 s / without", latency, MOST_P99, "lower"))
    return cases, verdicts, []


def lmdb(rows: int, cache: Path, say: Say) -> Found:
    """T2 by backend, and state that is ten times the memory."""
    busy = machine.busy_share()
    answers = recovery_lmdb.throughput(rows, cache, 2)
    cases = []
    for backend, of in answers.items():
        details = tuple({"busy_before": busy, "seconds": answer.seconds} for answer in of)
        cases.append(Case(f"T2, {backend}", "rows/s", "higher", tuple(answer.rate for answer in of), details))
        cases.append(Case(f"T2, {backend}/resident", "bytes", "lower", tuple(float(answer.details["memory"]) for answer in of)))
        say(f"T2, {backend}: {', '.join(f'{answer.rate / 1e6:.2f}' for answer in of)} M rows/s")
    checks = check_results("t2", {backend: of[-1].result for backend, of in answers.items()})
    claim = "LMDB: state / private memory that the workers were given"
    try:
        larger = recovery_lmdb.larger_than_memory()
    except EvenflowError as error:
        say(f"LMDB with more state than memory: {error}")
        return cases, [Verdict(claim, 0.0, recovery_lmdb.FOLD, "higher")], [*checks, f"LMDB with more state than memory failed: {error}"]
    say(f"LMDB: {larger.state >> 20:,} MiB of state, {larger.taken >> 20} MiB of private memory taken, {larger.given >> 20} MiB given")
    cases.append(Case("LMDB, more state than memory/private memory taken", "bytes", "lower", (float(larger.taken),)))
    return cases, [Verdict(claim, larger.state / larger.given, recovery_lmdb.FOLD, "higher")], checks


def resumed_cases(name: str, times: Sequence[Resumed], details: Sequence[dict[str, Any]]) -> list[Case]:
    """Both times of a system."""
    return [
        Case(f"{name}/first output", "s", "lower", tuple(found.first for found in times), tuple(details)),
        Case(f"{name}/new output", "s", "lower", tuple(found.news for found in times), tuple(details)),
    ]


def phase_cases(name: str, pairs: Sequence[Pair]) -> list[Case]:
    """Throughput and latency of the phases, and the checkpoints in them."""
    details = tuple({"busy_before": pair.busy} for pair in pairs)
    return [
        Case(f"{name}/without", "rows/s", "higher", tuple(pair.without.rate for pair in pairs), details),
        Case(f"{name}/with", "rows/s", "higher", tuple(pair.beside.rate for pair in pairs), details),
        Case(f"{name}/p99 without", "ms", "lower", tuple(pair.without.p99 for pair in pairs), details),
        Case(f"{name}/p99 with", "ms", "lower", tuple(pair.beside.p99 for pair in pairs), details),
        Case(f"{name}/checkpoint takes", "s", "lower", tuple(pair.beside.checkpoint or 0.0 for pair in pairs), details),
        Case(f"{name}/checkpoint", "bytes", "lower", tuple(float(pair.beside.size) for pair in pairs), details),
    ]


def counts_check(system: str, times: Sequence[Resumed]) -> str:
    """Check the state by the counts after the kills."""
    off = sum(found.off for found in times)
    return f"{system}: all counts after the kill are those of an undisturbed run" if not off else f"{system}: {off:,} counts are off"
