"""What topics cost: reading beside the client alone, writing by guarantee, latency from topic to topic, a count beside other systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..conditions import record
from ..record import Case, Run, Verdict
from ..throughput import check_names
from . import beside, guarantees, latency, reading
from .broker import kafka_broker
from .records import batches
from .topics import produce, topics

PARTS = ("reading", "writing", "latency", "count")
NOT_MEASURED = (
    "more than one broker, a network, and Apache Kafka: the broker is noida-db unless --bootstrap names another",
    "headers and compression",
    "the broker's own processor time, but it uses the same cores",
    *beside.NOT_MEASURED,
)


def run(
    *,
    parts: Sequence[str],
    bootstrap: str | None,
    rows: int,
    repeat: int,
    seconds: int,
    systems: Sequence[str],
    say: Callable[[str], None],
) -> Run:
    """The parts in the order of `PARTS`, with topics of their own on the broker at `bootstrap`, None for a broker of its own.

    `systems` of the part "count". Raises BenchmarkError for an unknown part or system, and if rows are missing or results differ.
    """
    check_names("part", parts, PARTS)
    cases: list[Case] = []
    verdicts: list[Verdict] = []
    checks: list[str] = []
    with kafka_broker(bootstrap) as address:
        if "reading" in parts:
            found = reading.measure(address, rows, repeat, say)
            cases, verdicts = cases + found[0], verdicts + found[1]
        if "writing" in parts:
            cases += guarantees.measure(address, rows, repeat, say)
            checks.append(f"writing: all {rows:,} rows are in the topic once")
        if "latency" in parts:
            cases += latency.measure(address, seconds, say)
        if "count" in parts:
            with topics(address, ["records"]) as made:
                produce(address, made["records"], batches(rows), key="key")
                compared = beside.measure(address, made["records"], rows, repeat, systems, say)
            cases, verdicts, checks = cases + compared[0], verdicts + compared[1], checks + compared[2]
    arguments = {"parts": list(parts), "rows": rows, "repeat": repeat, "seconds": seconds, "systems": list(systems)}
    return record("kafka", arguments, cases, verdicts, checks=checks, not_measured=NOT_MEASURED)
