"""Writing generated rows into a topic exactly once and at least once: rows per second and processor time on Ray."""

from __future__ import annotations

from collections.abc import Iterator

import evenflow as ef

from ..harness import machine
from ..harness.benchmark import Say
from ..harness.conditions import scratch
from ..harness.errors import BenchmarkError
from ..harness.jobs import timed
from ..harness.process import run_system
from ..harness.record import Case, Findings
from ..harness.task import Answer, Task
from .topics import records_of, topics

GUARANTEES = ("at_least_once", "exactly_once")
INTERVAL = "1s"
WAIT, TIMEOUT = 600.0, 900.0


def measure(bootstrap: str, rows: int, repeat: int, say: Say) -> Findings:
    """Measure each guarantee in turn. Raises BenchmarkError if rows are missing in a topic or repeated."""
    details: dict[str, list[dict[str, float]]] = {guarantee: [] for guarantee in GUARANTEES}
    for _ in range(repeat):
        for guarantee in GUARANTEES:
            busy = machine.busy_share()
            with topics(bootstrap, ["written"]) as names:
                options = {"bootstrap": bootstrap, "topic": names["written"], "guarantee": guarantee}
                (answer,) = run_system("kafka.writing", Task("writing", "", rows, 0, "", 1, options), TIMEOUT)
                found = sum(map(len, records_of(bootstrap, names["written"]).values()))
            if found != rows:
                raise BenchmarkError(f"writing, {guarantee}: {found:,} of {rows:,} rows are in the topic")
            details[guarantee].append({"rate": answer.rate, "cpu": answer.cpu_per_million, "busy_before": busy})
            say(f"writing, {guarantee}: {answer.rate:,.0f} rows/s, {answer.cpu_per_million:.2f} s of processor time per million rows")
    cases = []
    for guarantee, measured in details.items():
        rates, used = (tuple(each[what] for each in measured) for what in ("rate", "cpu"))
        cases.append(Case(f"writing/{guarantee}", "rows/s", "higher", rates, tuple(measured)))
        cases.append(Case(f"writing/{guarantee}, processor", "s per million rows", "lower", used))
    return Findings(cases, checks=[f"writing: all {rows:,} rows are in the topic once"])


def run(task: Task) -> Iterator[Answer]:
    """Run the job, with two workers per operator. The processor time includes the process that commits."""
    given = task.options
    flow = ef.Dataflow("bench-kafka-writing")
    sink = ef.write_kafka(given["topic"], bootstrap=given["bootstrap"], key="key", guarantee=given["guarantee"])
    flow.read(ef.generate(total=task.rows)).write(sink)
    with scratch("checkpoints") as folder:
        job = flow.run(config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(str(folder), interval=INTERVAL)))
        seconds, cpu = timed(job, WAIT, newcomers=True)
    yield Answer(seconds, task.rows, {}, {"cpu_seconds": cpu})
