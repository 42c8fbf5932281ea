"""Stela's micro-benchmarks, linear, star and diamond, on simulated nodes: the effect of one node more or less on the sinks' output.

Sizes are those of Xu, Peng, Gupta: Stela, IC2E 2016: 20 instances on 6 nodes, 20 on 4, and 36 on 6, as many for every operator; the rates
are ours. There is no backpressure: what an operator can't do is dropped, as Stela's model has it. A node has a core
for each instance that it was given; where its instances want more, they share its cores evenly.

>>> linear = TOPOLOGIES[0]
>>> before = throughput(linear, linear.placed())
>>> added = scaled_out(linear)
>>> before, added.stela > added.round_robin > before
(2000.0, True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from ..scheduler.policies.dataflow.figures import OperatorFigures
from ..scheduler.policies.dataflow.settings import PolicySettings
from ..scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from ..scheduler.policies.stela import Stela, slots_to_fill
from .record import Case, Verdict

ROUNDS = 200
"""Of going back and forth between what instances get to do and what their nodes have cores for."""


@dataclass(frozen=True, slots=True)
class Topology:
    """`rates`: records/s of an instance of each operator, in topological order; `offered`: records/s that come to each source."""

    name: str
    nodes: int
    instances: int
    rates: Mapping[str, float]
    offered: Mapping[str, float]
    edges: tuple[Edge, ...]

    @property
    def cores(self) -> int:
        """Of a node."""
        return -(-self.instances * len(self.rates) // self.nodes)

    def placed(self, *, packed: bool = False) -> Placement:
        """All instances, one operator's after the other's, dealt out to the nodes in turn, or a node filled before the next."""
        names = [f"node {index}" for index in range(self.nodes)]
        owners = [name for name in self.rates for _ in range(self.instances)]
        dealt = [(name, names[index * self.nodes // len(owners) if packed else index % self.nodes]) for index, name in enumerate(owners)]
        return {name: tuple(node for other, node in dealt if other == name) for name in self.rates}

    def snapshot(self, placement: Placement, settings: PolicySettings) -> DataflowSnapshot:
        """The snapshot for Stela."""
        figures = []
        for name, rate in self.rates.items():
            able = rate * len(placement[name])
            figures.append(
                OperatorFigures(name, len(placement[name]), self.offered.get(name), able, able, nodes=placement[name]),
            )
        return DataflowSnapshot(tuple(figures), self.edges, settings)


Placement = Mapping[str, tuple[str, ...]]
"""For each operator the nodes of its instances."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """Records/s of the sinks: before, and after a node came or went, by Stela and by round robin. `choices`: after each node's leaving."""

    before: float
    stela: float
    round_robin: float
    choices: tuple[float, ...] = ()


TOPOLOGIES = (
    Topology(
        "linear", 6, 4, {"spout": 1200, "b1": 1000, "b2": 500, "b3": 700, "b4": 1000}, {"spout": 4000},
        (Edge("spout", "b1"), Edge("b1", "b2"), Edge("b2", "b3"), Edge("b3", "b4")),
    ),
    Topology(
        "star", 4, 4, {"left": 1200, "right": 1200, "middle": 1000, "up": 1800, "down": 1500}, {"left": 4000, "right": 4000},
        (Edge("left", "middle"), Edge("right", "middle"), Edge("middle", "up"), Edge("middle", "down")),
    ),
    Topology(
        "diamond", 6, 6, {"spout": 1200, "m1": 1000, "m2": 400, "m3": 600, "m4": 1000, "sink": 4000}, {"spout": 6000},
        (*(Edge("spout", f"m{n}") for n in range(1, 5)), *(Edge(f"m{n}", "sink") for n in range(1, 5))),
    ),
)  # fmt: skip


def scaled_out(topology: Topology) -> Scaled:
    """A node more, which gets the new instances: where Stela wants them, or one for each operator in turn."""
    placement = topology.placed()
    seen = topology.snapshot(placement, PolicySettings(add_nodes=1))
    names, slots = list(topology.rates), slots_to_fill(seen)
    wanted = {**seen.parallelism, **Stela().decide(seen, None)[0].parallelism}
    in_turn = {name: len(placement[name]) + sum(names[n % len(names)] == name for n in range(slots)) for name in names}
    stela, round_robin = (
        throughput(topology, {name: (*placement[name], *("new",) * (sizes[name] - len(placement[name]))) for name in names})
        for sizes in (wanted, in_turn)
    )
    return Scaled(throughput(topology, placement), stela, round_robin)


def scaled_in(topology: Topology) -> Scaled:
    """A node less: that which Stela chooses, or any; `round_robin` is the mean of those whose turn it may be.

    The nodes are packed, for where each has the same mixture there is nothing to choose.
    """
    placement = topology.placed(packed=True)
    decision = Stela().decide(topology.snapshot(placement, PolicySettings(remove_nodes=1)), None)[0]
    targets = [move.target for move in decision.relocate]
    stela = throughput(topology, without(placement, decision.remove_node or "", targets))
    nodes = list(dict.fromkeys(node for several in placement.values() for node in several))
    choices = tuple(throughput(topology, without(placement, gone, [node for node in nodes if node != gone])) for gone in nodes)
    return Scaled(throughput(topology, placement), stela, mean(choices), choices)


def without(placement: Placement, gone: str, targets: Sequence[str]) -> Placement:
    """The instances of node `gone` handed to `targets` in turn.

    >>> without({"a": ("x", "y"), "b": ("x",)}, "x", ["y", "z"])
    {'a': ('y', 'y'), 'b': ('z',)}
    """
    moved = 0
    found: dict[str, tuple[str, ...]] = {}
    for name, nodes in placement.items():
        now = []
        for node in nodes:
            now.append(targets[moved % len(targets)] if node == gone else node)
            moved += node == gone
        found[name] = tuple(now)
    return found


def throughput(topology: Topology, placement: Placement) -> float:
    """What all sinks process together, records/s."""
    speeds = {name: [1.0] * len(nodes) for name, nodes in placement.items()}
    for _ in range(ROUNDS):
        arriving, _ = flow(topology, speeds)
        target = granted(topology, placement, arriving)
        speeds = {name: [(a + b) / 2 for a, b in zip(speeds[name], target[name], strict=True)] for name in speeds}
    done = flow(topology, speeds)[1]
    return sum(done[name] for name in topology.rates if all(edge.source != name for edge in topology.edges))


def flow(topology: Topology, speeds: Mapping[str, Sequence[float]]) -> tuple[dict[str, float], dict[str, float]]:
    """What comes to each operator and what it processes, records/s, where its instances have these parts of a core."""
    arriving, done = dict[str, float](), dict[str, float]()
    for name, rate in topology.rates.items():
        arriving[name] = topology.offered.get(name, 0.0) + sum(
            done[edge.source] * edge.share for edge in topology.edges if edge.target == name
        )
        each = arriving[name] / len(speeds[name])
        done[name] = sum(min(each, rate * speed) for speed in speeds[name])
    return arriving, done


def granted(topology: Topology, placement: Placement, arriving: Mapping[str, float]) -> dict[str, list[float]]:
    """The part of a core that each instance may use: all of it, or where its node has too few, an even share of what others leave."""
    wishes: dict[str, list[float]] = {}
    for name, nodes in placement.items():
        for node in nodes:
            wishes.setdefault(node, []).append(min(1.0, arriving[name] / len(nodes) / topology.rates[name]))
    limits = {node: _even_limit(wanted, float(topology.cores)) for node, wanted in wishes.items()}
    return {name: [limits[node] for node in nodes] for name, nodes in placement.items()}


def _even_limit(wanted: Sequence[float], cores: float) -> float:
    """The largest part of a core that all may use, so that together they stay within `cores`."""
    left = cores
    for count, wish in enumerate(sorted(wanted)):
        if wish * (len(wanted) - count) > left:
            return left / (len(wanted) - count)
        left -= wish
    return 1.0


def cases_of(name: str, scaled: Scaled) -> list[Case]:
    """What is reported of a topology and a direction."""
    return [
        Case(f"{name}/before", "records/s", "higher", (scaled.before,)),
        Case(f"{name}, stela/after", "records/s", "higher", (scaled.stela,)),
        Case(f"{name}, round robin/after", "records/s", "higher", scaled.choices or (scaled.round_robin,)),
    ]


def run() -> dict[str, Scaled]:
    """Every topology, a node added and a node removed."""
    return {
        f"{topology.name}, a node {what}": scale(topology)
        for topology in TOPOLOGIES
        for what, scale in (("more", scaled_out), ("less", scaled_in))
    }


def verdicts(results: Mapping[str, Scaled]) -> list[Verdict]:
    """Stela against round robin, by the worst of the topologies."""
    worst = {end: min(one.stela / one.round_robin for name, one in results.items() if name.endswith(end)) for end in ("more", "less")}
    return [
        Verdict("simulated nodes, one more: Stela's throughput / round robin's, the lowest", worst["more"], 1.0, "higher"),
        Verdict("simulated nodes, one less: Stela's throughput / the mean of all nodes', the lowest", worst["less"], 1.0, "higher"),
    ]
