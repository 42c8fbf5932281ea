"""Writing a topic exactly once beside at least once: rows per second and processor time on Ray, and the bytes that a row costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory

import evenflow as ef

from ...connectors.kafka.cluster import KafkaCluster
from ...connectors.kafka.encoding import Encoding
from ...connectors.kafka.sink import KafkaSink
from ...connectors.staging import Place, StagedFile
from .. import machine
from ..errors import BenchmarkError
from ..machine import CpuWatch
from ..record import Case
from .proxy import Proxy
from .topics import records_of, topics

GUARANTEES = ("at_least_once", "exactly_once")
COUNTED_ROWS = 100_000
"""Whose bytes are counted, in a job of its own."""

INTERVAL = "1s"
WAIT = "600s"


class CountedSink(KafkaSink):
    """Counts the bytes of the files in which rows wait for their checkpoint, where it commits."""

    staged = 0

    def write_staged(self, checkpoint: int, place: Place, files: Sequence[StagedFile]) -> None:
        self.staged += sum(file.size for file in files)
        super().write_staged(checkpoint, place, files)


def measure(bootstrap: str, rows: int, repeat: int, say: Callable[[str], None]) -> list[Case]:
    """Each guarantee in turn. Raises BenchmarkError if rows are missing in a topic or come twice."""
    details: dict[str, list[dict[str, float]]] = {guarantee: [] for guarantee in GUARANTEES}
    for _ in range(repeat):
        for guarantee in GUARANTEES:
            busy = machine.busy_share()
            seconds, cpu = _written(bootstrap, guarantee, rows)
            details[guarantee].append({"seconds": seconds, "cpu_seconds": cpu, "busy_before": busy})
            say(f"writing, {guarantee}: {rows / seconds:,.0f} rows/s, {cpu / rows * 1e6:.2f} s of processor time per million rows")
    cases = []
    for guarantee, found in details.items():
        rates = tuple(rows / each["seconds"] for each in found)
        used = tuple(each["cpu_seconds"] / rows * 1e6 for each in found)
        sent, staged = _bytes(bootstrap, guarantee)
        say(f"writing, {guarantee}: {sent / COUNTED_ROWS:.0f} bytes a row to the broker, {staged / COUNTED_ROWS:.0f} to the staging folder")
        cases += [
            Case(f"writing/{guarantee}", "rows/s", "higher", rates, tuple(found)),
            Case(f"writing/{guarantee}, processor", "s per million rows", "lower", used),
            Case(f"writing/{guarantee}, to the broker", "bytes a row", "lower", (sent / COUNTED_ROWS,)),
            Case(f"writing/{guarantee}, staged", "bytes a row", "lower", (staged / COUNTED_ROWS,)),
        ]
    return cases


def _written(bootstrap: str, guarantee: str, rows: int) -> tuple[float, float]:
    """The seconds that a job on Ray with two workers runs, and the processor time of all its processes."""
    with topics(bootstrap, ["written"]) as names, TemporaryDirectory(prefix="evenflow-bench-checkpoints-") as folder:
        flow = ef.Dataflow("bench-kafka-writing")
        sink = ef.write_kafka(names["written"], bootstrap=bootstrap, key="key", guarantee=guarantee)  # type: ignore[arg-type]  # one of two
        flow.read(ef.generate(total=rows)).write(sink)
        job = flow.run(config=ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(folder, interval=INTERVAL)))
        begun = job.status().running_seconds
        with CpuWatch(newcomers=True) as cpu:
            job.wait(WAIT)
        seconds = job.status().running_seconds - begun
        _check(bootstrap, names["written"], guarantee, rows)
    return seconds, cpu.seconds


def _bytes(bootstrap: str, guarantee: str) -> tuple[int, int]:
    """Bytes to the broker and to the staging folder of a job in this process."""
    with Proxy(bootstrap) as proxy, topics(bootstrap, ["written"]) as names, TemporaryDirectory() as folder:
        flow = ef.Dataflow("bench-kafka-bytes")
        cluster = KafkaCluster(proxy.bootstrap, {}, "write_kafka")
        sink = CountedSink(names["written"], cluster, Encoding("json", "key"), "murmur2", guarantee)
        flow.read(ef.generate(total=COUNTED_ROWS)).write(sink)
        flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(folder, interval=INTERVAL))).wait(WAIT)
        _check(bootstrap, names["written"], guarantee, COUNTED_ROWS)
        return proxy.sent, sink.staged


def _check(bootstrap: str, topic: str, guarantee: str, rows: int) -> None:
    found = sum(map(len, records_of(bootstrap, topic).values()))
    if found != rows:
        raise BenchmarkError(f"writing, {guarantee}: {found:,} of {rows:,} rows are in the topic")
