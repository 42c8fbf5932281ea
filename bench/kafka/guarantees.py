"""Writing a topic exactly once beside at least once: rows per second and processor time on Ray, and the bytes that a row costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory

import evenflow as ef

from ...connectors.kafka.cluster import KafkaCluster
from ...connectors.kafka.sink import KafkaSink
from ...connectors.kafka.values.encoding import Encoding
from ...connectors.staged.staging import StagedFile, StagingPlace
from .. import machine
from ..errors import BenchmarkError
from ..process import run_system
from ..record import Case
from ..task import Answer, Task
from .proxy import Proxy
from .topics import records_of, topics

GUARANTEES = ("at_least_once", "exactly_once")
COUNTED_ROWS = 100_000
"""Whose bytes are counted, in a job of its own."""

WAIT, TIMEOUT = "600s", 900.0


class CountedSink(KafkaSink):
    """Counts the bytes of the files in which rows wait for their checkpoint, where it commits."""

    staged = 0

    def write_staged(self, checkpoint: int, place: StagingPlace, files: Sequence[StagedFile]) -> None:
        self.staged += sum(file.size for file in files)
        super().write_staged(checkpoint, place, files)


def measure(bootstrap: str, rows: int, repeat: int, say: Callable[[str], None]) -> list[Case]:
    """Each guarantee in turn. Raises BenchmarkError if rows are missing in a topic or come twice."""
    details: dict[str, list[dict[str, float]]] = {guarantee: [] for guarantee in GUARANTEES}
    for _ in range(repeat):
        for guarantee in GUARANTEES:
            busy = machine.busy_share()
            answer = _written(bootstrap, guarantee, rows)
            used = answer.details["cpu_seconds"]
            details[guarantee].append({"seconds": answer.seconds, "cpu_seconds": used, "busy_before": busy})
            say(f"writing, {guarantee}: {answer.rate:,.0f} rows/s, {used / rows * 1e6:.2f} s of processor time per million rows")
    cases = []
    for guarantee, found in details.items():
        rates = tuple(rows / each["seconds"] for each in found)
        used_by = tuple(each["cpu_seconds"] / rows * 1e6 for each in found)
        sent, staged = _bytes(bootstrap, guarantee)
        say(f"writing, {guarantee}: {sent / COUNTED_ROWS:.0f} bytes a row to the broker, {staged / COUNTED_ROWS:.0f} to the staging folder")
        cases += [
            Case(f"writing/{guarantee}", "rows/s", "higher", rates, tuple(found)),
            Case(f"writing/{guarantee}, processor", "s per million rows", "lower", used_by),
            Case(f"writing/{guarantee}, to the broker", "bytes a row", "lower", (sent / COUNTED_ROWS,)),
            Case(f"writing/{guarantee}, staged", "bytes a row", "lower", (staged / COUNTED_ROWS,)),
        ]
    return cases


def _written(bootstrap: str, guarantee: str, rows: int) -> Answer:
    with topics(bootstrap, ["written"]) as names:
        options = {"bootstrap": bootstrap, "topic": names["written"], "guarantee": guarantee}
        (answer,) = run_system("kafka_writing", Task("writing", "", rows, 0, "", 1, options), TIMEOUT)
        _check(bootstrap, names["written"], guarantee, rows)
    return answer


def _bytes(bootstrap: str, guarantee: str) -> tuple[int, int]:
    """Bytes to the broker and to the staging folder of a job in this process."""
    with Proxy(bootstrap) as proxy, topics(bootstrap, ["written"]) as names, TemporaryDirectory() as folder:
        flow = ef.Dataflow("bench-kafka-bytes")
        cluster = KafkaCluster(proxy.bootstrap, {}, "write_kafka")
        sink = CountedSink(names["written"], cluster, Encoding("json", "key"), "murmur2", guarantee)
        flow.read(ef.generate(total=COUNTED_ROWS)).write(sink)
        flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(folder, interval="1s"))).wait(WAIT)
        _check(bootstrap, names["written"], guarantee, COUNTED_ROWS)
        return proxy.sent, sink.staged


def _check(bootstrap: str, topic: str, guarantee: str, rows: int) -> None:
    found = sum(map(len, records_of(bootstrap, topic).values()))
    if found != rows:
        raise BenchmarkError(f"writing, {guarantee}: {found:,} of {rows:,} rows are in the topic")
