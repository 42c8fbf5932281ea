"""The cost of topics: writing by guarantee, latency from topic to topic, and a count compared with Bytewax."""

from __future__ import annotations

import argparse

from ..harness.benchmark import Argument, Benchmark, Say, repeat, some_of
from ..harness.record import Findings
from . import count, latency, writing
from .broker import kafka_broker
from .records import batches
from .topics import produce, topics

PARTS = ("writing", "latency", "count")


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Measure the chosen parts with topics of their own. Raises BenchmarkError if rows are missing or results differ."""
    found = Findings([])
    with kafka_broker(given.bootstrap) as address:
        if "writing" in given.parts:
            found += writing.measure(address, given.rows, given.repeat, say)
        if "latency" in given.parts:
            found += Findings(latency.measure(address, given.seconds, say))
        if "count" in given.parts:
            with topics(address, ["records"]) as made:
                produce(address, made["records"], batches(given.rows), key="key")
                found += count.measure(address, made["records"], given, say)
    return found


BENCHMARK = Benchmark(
    "kafka",
    "writing topics, latency from topic to topic, and a count compared with Bytewax",
    (
        Argument("--parts", some_of(PARTS), list(PARTS), "what to measure"),
        Argument("--systems", some_of(count.SYSTEMS), list(count.SYSTEMS), "systems of the part count"),
        Argument("--bootstrap", str, None, "a Kafka broker for topics that are created and deleted (default: starts noida-db)"),
        Argument("--rows", int, 400_000, "rows of the topics"),
        repeat(3, "iterations of each, but of latency"),
        Argument("--seconds", int, 20, "of each mode of the part latency"),
    ),
    run,
    (
        "more than one broker, a network, and Apache Kafka: the broker is noida-db unless --bootstrap names another",
        "headers and compression",
        "the broker's own processor time, but it uses the same cores",
        "Bytewax with snapshots",
    ),
)
