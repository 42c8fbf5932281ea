"""The six topologies. Each call adds an operator: its workers, and the milliseconds that each waits for a record.

The shapes and what the operators do are those of the Storm topologies in github.com/jerrypeng/storm-resource-aware-topologies and, for
Network, github.com/flint-stone/HengeExperiments. PageLoad and Processing wait a millisecond for each point of CPU load that their operators
declare there; the other waits are ours. Neighbours have different numbers of workers, because an operator with as many as the one
before it would be chained to it, and the two would be scaled as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import evenflow as ef

from .load import Load
from .rows import appended, cut, failed, is_even_count, parsed, passes, passes_again, succeeded

Sinks = Mapping[str, ef.Stream]
"""The output streams of a topology by the name of their last operator."""

Build = Callable[[Sequence[ef.Stream], Load], Sinks]


def linear(lines: Sequence[ef.Stream], load: Load) -> Sinks:
    """spout -> b1 -> b2 -> b3 -> b4."""
    spout = load.map(lines[0], "spout", 2, 10, parsed)
    b1 = load.map(spout, "b1", 3, 25)
    b2 = load.map(b1, "b2", 2, 40)
    b3 = load.map(b2, "b3", 3, 50)
    return {"b4": load.map(b3, "b4", 1, 8)}


def star(lines: Sequence[ef.Stream], load: Load) -> Sinks:
    """Add two spouts that feed one operator, whose rows all go to two sinks."""
    left = load.map(lines[0], "left", 2, 20, parsed)
    right = load.map(lines[1], "right", 2, 20, parsed)
    middle = load.merge([left, right], "middle", 4, 100)
    return {"up": load.map(middle, "up", 1, 8), "down": load.map(middle, "down", 1, 6)}


def diamond(lines: Sequence[ef.Stream], load: Load) -> Sinks:
    """Add a spout whose rows all go to each of four operators, and from there to one sink."""
    spout = load.map(lines[0], "spout", 3, 20, parsed)
    waits = {"m1": 15.0, "m2": 40.0, "m3": 25.0, "m4": 15.0}
    middle = [load.map(spout, name, 2, wait_ms) for name, wait_ms in waits.items()]
    return {"sink": load.merge(middle, "sink", 1, 2)}


def page_load(lines: Sequence[ef.Stream], load: Load) -> Sinks:
    """spout -> transform -> filter -> join -> filter_2 -> aggregate -> sink."""
    spout = load.map(lines[0], "spout", 2, 40, parsed)
    transformed = load.map(spout, "transform", 3, 40, cut)
    filtered = load.keep(transformed, "filter", 2, 40, passes)
    joined = load.map(filtered, "join", 1, 15)
    again = load.keep(joined, "filter_2", 2, 20, passes_again)
    aggregated = load.map(again, "aggregate", 3, 20, appended)
    return {"sink": load.map(aggregated, "sink", 1, 15)}


def processing(lines: Sequence[ef.Stream], load: Load) -> Sinks:
    """spout -> transform -> {filter -> join_1 -> output_1; join_2 -> normalize -> output_2}."""
    spout = load.map(lines[0], "spout", 2, 30, parsed)
    transformed = load.map(spout, "transform", 3, 30, cut)
    joined_1 = load.map(load.keep(transformed, "filter", 2, 30, passes), "join_1", 3, 10)
    normalized = load.map(load.map(transformed, "join_2", 2, 15), "normalize", 3, 10)
    return {"output_1": load.map(joined_1, "output_1", 1, 10), "output_2": load.map(normalized, "output_2", 1, 10)}


def network(lines: Sequence[ef.Stream], load: Load) -> Sinks:
    """spout -> parse -> {failures -> parse -> aggregate by id -> filter -> functor; successes -> parse} -> join by id."""
    spout = load.map(lines[0], "spout", 2, 15)
    records = load.map(spout, "parse_lines", 3, 25, parsed)
    failures = load.map(load.keep(records, "filter_failure", 2, 15, failed), "parse_failures", 1, 40)
    aggregated = load.count(failures, "aggregate", 2, 30)
    functor = load.map(load.keep(aggregated, "filter", 1, 15, is_even_count), "functor", 2, 20)
    successes = load.map(load.keep(records, "filter_success", 2, 15, succeeded), "parse_success", 1, 30)
    return {"join": load.count_both(functor, successes, "join", 1, 10)}


@dataclass(frozen=True, slots=True)
class Topology:
    """A function that adds the operators to the streams of `sources` sources, each offering `rate` lines a second."""

    build: Build
    rate: float
    sources: int = 1


TOPOLOGIES: Final[dict[str, Topology]] = {
    "linear": Topology(linear, 100.0),
    "star": Topology(star, 40.0, sources=2),
    "diamond": Topology(diamond, 100.0),
    "page_load": Topology(page_load, 100.0),
    "processing": Topology(processing, 120.0),
    "network": Topology(network, 100.0),
}
"""The topologies by name."""
