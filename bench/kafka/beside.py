"""A running count of a topic's records per key in evenflow, Bytewax and Quix Streams: the same topic, in turns, with equal results."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from .. import machine
from ..conditions import scratch
from ..errors import BenchmarkError
from ..process import run_system
from ..record import Case, Verdict
from ..systems.kafka_quix import QUIX
from ..task import Answer, Task
from ..throughput import check_names, check_results

TARGET = 3.0
TIMEOUT = 900.0
INTERVAL = "5s"
"""Between checkpoints of evenflow's: as often as Quix Streams commits. Bytewax makes no snapshots here."""

SYSTEMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "evenflow": ("kafka_evenflow", {"how": "aggregate", "interval": INTERVAL}),
    "evenflow-function": ("kafka_evenflow", {"how": "function", "interval": INTERVAL}),
    "bytewax": ("kafka_bytewax", {}),
    "quix": ("kafka_quix", {}),
}
"""What runs in a process of its own for each, and its options."""

OURS, OTHERS = tuple(SYSTEMS)[:2], tuple(SYSTEMS)[2:]
NOT_MEASURED = ("Bytewax with snapshots", "Quix Streams in more than one process")


def measure(
    bootstrap: str, topic: str, rows: int, repeat: int, systems: Sequence[str], say: Callable[[str], None]
) -> tuple[list[Case], list[Verdict], list[str]]:
    """Cases, verdicts, and what was checked. `rows` of `records.batch_of` are in the topic.

    Raises BenchmarkError for an unknown system, if one fails, or if results differ.
    """
    check_names("system", systems, SYSTEMS)
    if "quix" in systems and not os.environ.get(QUIX):
        raise BenchmarkError(f"Quix Streams needs an environment of its own: set {QUIX} to its interpreter, or leave quix out of --systems")
    found: dict[str, list[Answer]] = {name: [] for name in systems}
    details: dict[str, list[dict[str, float]]] = {name: [] for name in systems}
    for _ in range(repeat):
        for name in systems:
            answer, busy = _once(name, bootstrap, topic, rows)
            found[name].append(answer)
            details[name].append({"seconds": answer.seconds, "busy_before": busy, **answer.details})
            used = answer.details["cpu_seconds"] / rows * 1e6
            say(f"count, {name}: {answer.rate:,.0f} rows/s, {used:.2f} s of processor time per million rows")
    cases = []
    for name, answers in found.items():
        used_by = tuple(answer.details["cpu_seconds"] / rows * 1e6 for answer in answers)
        cases.append(Case(f"count/{name}", "rows/s", "higher", tuple(answer.rate for answer in answers), tuple(details[name])))
        cases.append(Case(f"count/{name}, processor", "s per million rows", "lower", used_by))
    return cases, _verdicts(cases), check_results("count", {name: answers[-1].result for name, answers in found.items()})


def _once(name: str, bootstrap: str, topic: str, rows: int) -> tuple[Answer, float]:
    system, options = SYSTEMS[name]
    output = scratch(system)
    task = Task("count", "", rows, 0, f"{output}/out", 1, {"bootstrap": bootstrap, "topic": topic, **options})
    try:
        busy = machine.busy_share()
        (answer,) = run_system(system, task, TIMEOUT)
    finally:
        shutil.rmtree(output)
    return answer, busy


def _verdicts(cases: Sequence[Case]) -> list[Verdict]:
    medians = {case.name: median(case.values) for case in cases}
    found = []
    for ours in (f"count/{name}" for name in OURS):
        for other in OTHERS:
            theirs = f"count/{other}"
            if ours in medians and theirs in medians:
                found.append(Verdict(f"{ours}, rows/s / {other}'s", medians[ours] / medians[theirs], TARGET, "higher"))
                ours_cpu, theirs_cpu = medians[f"{ours}, processor"], medians[f"{theirs}, processor"]
                found.append(Verdict(f"{ours}, {other}'s processor time / its own", theirs_cpu / ours_cpu, TARGET, "higher"))
    return found
