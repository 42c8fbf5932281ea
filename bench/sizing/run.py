"""The needs of a job by its load: processor time per row, memory and storage per key, bytes between workers per row.

Processor time is that of all processes of the job and of Ray, so that other programs hardly change it. A job with few keys is
subtracted from the memory of one with many.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import evenflow as ef

from ...actors.channels.frames import ChannelEncoder
from ...engine.protocol.ids import Attempt, ChannelId
from ..harness import machine
from ..harness.benchmark import Argument, Benchmark, Say, repeat, some_of
from ..harness.conditions import scratch
from ..harness.jobs import cancelled, rows_read, timed, until
from ..harness.record import Case, Findings
from ..harness.sinks import DiscardSink
from .flows import FLOWS, STATES, flow_of, state_flow

WAIT = 600.0
MILLION = 1_000_000
FEW_KEYS = 1_000
WORKERS = 2
WIRE_ROWS = 100_000


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure processor time, then the network, then memory and storage."""
    cases: list[Case] = []

    def found(case: Case) -> None:
        cases.append(case)
        say(f"{case.name}: {case.median:.3g} {case.unit}")

    for name in given.flows:
        found(processors(name, given.python_rows if name.endswith("python") else given.rows, given.repeat))
    for name, strings in (("int keys", False), ("string keys", True)):
        found(Case(f"sent between workers/{name}", "bytes a row", "lower", (bytes_a_row(strings=strings),)))
    for name in given.states:
        for case in state(name, given.keys, given.repeat):
            found(case)
    return Findings(cases, facts={"workers": WORKERS})


def processors(name: str, rows: int, times: int) -> Case:
    """Measure the processors that a flow keeps busy for each 100,000 rows a second."""
    found, details = [], []
    for _ in range(times):
        details.append({"busy_before": machine.busy_share()})
        job = flow_of(name, rows, DiscardSink()).run(config=ef.JobConfig(parallelism=WORKERS))
        _, cpu = timed(job, WAIT)
        found.append(cpu / rows * 100_000)
    return Case(name, "processors", "lower", tuple(found), tuple(details))


def bytes_a_row(*, strings: bool) -> float:
    """Return the size of the messages that carry rows of a key, a time, two numbers and the event time to two workers."""
    reader = ef.generate(total=WIRE_ROWS, keys=WIRE_ROWS, string_keys=strings).reader(0, 1)
    encoders = [ChannelEncoder(ChannelId(number), Attempt(0), "keyed") for number in range(WORKERS)]
    size = 0
    while (batch := reader.poll(8192)) is not None and batch.num_rows:
        for number, encoder in enumerate(encoders):
            part = batch.slice(number * batch.num_rows // WORKERS, batch.num_rows // WORKERS)
            size += sum(memoryview(frame).nbytes for frame in encoder.encode(part))
    return size / WIRE_ROWS


def state(name: str, keys: int, times: int) -> Iterator[Case]:
    """Measure the memory and the checkpoint of a million keys."""
    memory, storage, details = [], [], []
    for _ in range(times):
        details.append({"busy_before": machine.busy_share()})
        few, _ = resident(name, FEW_KEYS, keys)
        many, saved = resident(name, keys, keys)
        memory.append((many - few) / (keys - FEW_KEYS) * MILLION / 2**20)
        storage.append(saved / keys * MILLION / 2**20)
    yield Case(f"{name}/memory", "MiB a million keys", "lower", tuple(memory), tuple(details))
    yield Case(f"{name}/checkpoint", "MiB a million keys", "lower", tuple(storage), tuple(details))


def resident(name: str, keys: int, rows: int) -> tuple[float, float]:
    """Run a job with so many keys until it has counted `rows` rows; return the memory of its workers and the size of its checkpoint."""
    with scratch("sizing") as folder:
        checkpoint = ef.CheckpointConfig(str(folder / "checkpoints"), interval="2s")
        (folder / "state").mkdir()
        where = ef.StateConfig(STATES[name][2], dir=str(folder / "state")) if STATES[name][2] != "memory" else ef.StateConfig()
        job = state_flow(name, keys, DiscardSink()).run(config=ef.JobConfig(parallelism=1, checkpoint=checkpoint, state=where))
        with cancelled(job, WAIT):
            until(lambda: rows_read(job, "state") >= rows, f"{rows:,} rows are counted", WAIT, every=0.2)
            seen = len(job.checkpoints())
            saved = until(lambda: complete(job, seen), "a checkpoint is complete", WAIT, every=0.2)
            return float(sum(machine.rss_bytes(pid) for pid in machine.workers_below(os.getpid()))), saved


def complete(job: ef.Job, seen: int) -> float:
    """Return the size of the state of a complete checkpoint after the first `seen`, 0 without one."""
    after = [report for report in job.checkpoints()[seen:] if report.state is ef.CheckpointState.COMPLETE]
    return float(after[-1].state_bytes) if after else 0.0


BENCHMARK = Benchmark(
    "sizing",
    "what a job needs: processors, memory, network and storage",
    (
        Argument("--flows", some_of(FLOWS), list(FLOWS), "flows"),
        Argument("--states", some_of(STATES), list(STATES), "kinds of state"),
        Argument("--rows", int, 4 * MILLION, "rows of each flow"),
        Argument("--python-rows", int, MILLION, "rows of each flow with Python functions"),
        Argument("--keys", int, MILLION, "keys of each state"),
        repeat(1),
    ),
    run,
    (
        "a real network, more than one machine, and more than two cores",
        "sources and sinks: rows are generated and discarded",
        "the start of a job",
        "checkpoints while processor time is measured",
    ),
)
