"""Published results of the papers and systems, by the policy and through `evenflow plan scale`."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from evenflow.cli import main
from evenflow.scheduler.policies.base import settled
from evenflow.scheduler.policies.dataflow.snapshot_json import snapshot_from_json
from evenflow.scheduler.policies.dhalion import Dhalion
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.policies.latency import LatencyPolicy
from evenflow.scheduler.policies.queueing import QueueingPolicy
from evenflow.scheduler.policies.registry import own_settings
from evenflow.scheduler.policies.stela import Stela
from evenflow.scheduler.policies.threshold import ThresholdPolicy


def source(rate: float, name: str = "src") -> dict:
    return {"name": name, "parallelism": 1, "source_rate": rate}


def operator(name: str, parallelism: int, processing: float, output: float | None = None, **others) -> dict:
    rates = {"true_processing_rate": processing} | ({} if output is None else {"true_output_rate": output})
    return {"name": name, "parallelism": parallelism, **rates, **others}


def chain(*operators: dict, **policy) -> dict:
    names = [each["name"] for each in operators]
    return {"operators": list(operators), "edges": [list(edge) for edge in pairwise(names)], "policy": policy}


def stela_slides() -> dict:
    """Return ten operators on five machines; 1, 3, 4 and 6 are congested; sinks produce 4500 tuples/s in all."""
    executed = {1: 3000, 2: 3000, 3: 1000, 4: 2000, 5: 1000, 6: 500, 7: 1000, 8: 1000, 9: 200, 10: 300}
    machines = {1: "e", 2: "e", 3: "b", 4: "a", 5: "a", 6: "b", 7: "c", 8: "c", 9: "d", 10: "d"}
    operators = [
        {
            "name": str(number), "parallelism": 1, "observed_processing_rate": rate, "observed_output_rate": rate,
            "nodes": [machines[number]],
        }
        for number, rate in executed.items()
    ]  # fmt: skip
    operators[0]["source_rate"] = 5000
    edges = [["1", "2"], ["1", "3"], ["2", "4"], ["3", "5"], ["3", "6"], ["5", "7"], ["5", "8"], ["6", "9", 0.4], ["6", "10", 0.6]]
    return {"operators": operators, "edges": edges}


def two_sources() -> dict:
    snapshot = chain(source(100), operator("o1", 1, 50, 400), operator("o2", 1, 100, 200))
    snapshot["operators"].append(source(100, "src2"))
    snapshot["edges"].append(["src2", "o1"])
    return snapshot


def jackson(**policy) -> dict:
    return chain(
        source(10), operator("A", 1, 4, 10), operator("B", 1, 12, 2.4), operator("C", 1, 1, 1), **policy
    )  # fmt: skip


CASES = [
    pytest.param(
        Ds2(),
        {
            "operators": [
                {"name": "src", "parallelism": 1, "source_rate": 2000},
                {
                    "name": "o2",
                    "parallelism": 2,
                    "true_processing_rate": 1000,
                    "true_output_rate": 3800,
                    "observed_processing_rate": 950,
                    "observed_output_rate": 3600,
                    "queue_records": 0,
                    "backpressure": 0.0,
                    "latency_ms": 3.1,
                    "nodes": ["a", "b"],
                },
            ],
            "edges": [["src", "o2"]],
            "policy": {"latency_target_ms": 100},
        },
        {"o2": 4},
        id="the documented snapshot",
    ),
    pytest.param(
        Ds2(), chain(source(2000), operator("o2", 2, 1000, 3800), operator("o3", 3, 2930, 600)), {"o2": 4, "o3": 8}, id="DS2's lecture"
    ),
    pytest.param(
        Ds2(), chain(source(100), operator("o1", 1, 50, 400), operator("o2", 1, 100, 200)), {"o1": 2, "o2": 8}, id="DS2's own test"
    ),
    pytest.param(Ds2(), two_sources(), {"o1": 4, "o2": 16}, id="DS2's own test with two sources"),
    pytest.param(
        Ds2(),
        chain(source(1e6 / 60), operator("flat_map", 1, 1e5 / 60, 2e6 / 60), operator("count", 1, 1e6 / 60)),
        {"flat_map": 10, "count": 20},
        id="DS2 on Heron's word count",
    ),
    pytest.param(
        Ds2(),
        chain(source(40), operator("o1", 1, 10, 100, observed_processing_rate=10), operator("o2", 1, 200, observed_processing_rate=100)),
        {"o1": 4, "o2": 2},
        id="DS2's figure 2",
    ),
    pytest.param(Stela(add_nodes=1), stela_slides(), {"3": 2, "4": 2}, id="Stela's slides, out by a machine"),
    pytest.param(Stela(slots=1), stela_slides(), {"3": 2}, id="Stela's slides, out by a slot"),
    pytest.param(
        Dhalion(),
        {"operators": [{"name": "o", "instances": [{"backpressure": 0.5}, {"backpressure": 0.0}]}]},
        {"o": 4},
        id="Heron's scale-up resolver",
    ),
    pytest.param(
        Dhalion(), chain(source(100), {"name": "o", "parallelism": 2, "backpressure": 0.5}), {"o": 4}, id="Heron's resolver behind a spout"
    ),
    pytest.param(
        Dhalion(),
        chain({**source(100), "backpressure": 0.5}, {"name": "o", "parallelism": 2}),
        {"o": 4},
        id="Heron's resolver, by the sender",
    ),
    pytest.param(
        ThresholdPolicy(target_utilisation=1.0),
        chain({**operator("v", 10, 100), "source_rate": 50}),
        {"v": 5},
        id="Flink's autoscaler, down",
    ),
    pytest.param(
        ThresholdPolicy(target_utilisation=1.0),
        chain(source(50), operator("v", 10, 100)),
        {"v": 5},
        id="Flink's autoscaler, down after a source",
    ),
    pytest.param(ThresholdPolicy(target_utilisation=0.5), chain(source(100), operator("v", 2, 40)), {"v": 10}, id="Flink's autoscaler, up"),
    pytest.param(QueueingPolicy(processors=12), jackson(), {"A": 3, "B": 3, "C": 6}, id="DRS with 12 processors"),
    pytest.param(QueueingPolicy(processors=16), jackson(), {"A": 4, "B": 4, "C": 8}, id="DRS with 16 processors"),
    pytest.param(QueueingPolicy(), jackson(latency_target_ms=1713.28), {"A": 3, "B": 3, "C": 6}, id="DRS by the latency of 12 processors"),
    pytest.param(QueueingPolicy(), jackson(latency_target_ms=1060.73), {"A": 4, "B": 4, "C": 8}, id="DRS by the latency of 16 processors"),
    pytest.param(
        LatencyPolicy(),
        chain(
            source(386950.42),
            {"name": "map", "parallelism": 12, "observed_processing_rate": 178376.65, "latency_ms": 700},
            latency_target_ms=500,
        ),
        {"map": 27},
        id="latency violations of a continuous operator",
    ),
    pytest.param(
        LatencyPolicy(),
        chain(source(10), {"name": "join", "parallelism": 3, "kind": "join", "latency_ms": 700}, latency_target_ms=500),
        {"join": 5},
        id="latency violations of a join",
    ),
    pytest.param(
        LatencyPolicy(),
        chain(source(10), {"name": "window", "parallelism": 3, "kind": "window", "latency_ms": 700}, latency_target_ms=500),
        {"window": 5},
        id="latency violations of a window",
    ),
]


@pytest.mark.parametrize(("policy", "document", "parallelism"), CASES)
def test_policy_decides_as_published(policy, document, parallelism):
    assert settled(policy, snapshot_from_json(json.dumps(document))).parallelism == parallelism


@pytest.mark.parametrize(("policy", "document", "parallelism"), CASES)
def test_the_command_line_says_the_same(policy, document, parallelism, tmp_path, capsys):
    path = tmp_path / "dataflow.json"
    path.write_text(json.dumps(document))
    own = [word for name, value in own_settings(policy).items() for word in ("--set", f"{name}={value}")]
    assert main(["plan", "scale", "--policy", policy.name, "--snapshot", str(path), *own]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["parallelism"] == parallelism
    assert (shown["remove_node"], shown["rebalance"]) == (None, [])
    assert shown["reason"]


def test_stela_removes_the_machine_with_the_lowest_sum_of_etps(tmp_path, capsys):
    path = tmp_path / "dataflow.json"
    path.write_text(json.dumps(stela_slides()))
    assert main(["plan", "scale", "--policy", "stela", "--set", "remove_nodes=1", "--snapshot", str(path)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["parallelism"], shown["remove_node"]) == ({}, "e")
    assert shown["relocate"] == [{"operator": "1", "source": "e", "target": "d"}, {"operator": "2", "source": "e", "target": "c"}]


def test_heron_word_count_needs_one_step():
    first = chain(source(1e6), operator("flat_map", 1, 1e5, 2e6), operator("count", 1, 1e6))
    second = chain(source(1e6), operator("flat_map", 10, 1e6, 2e7), operator("count", 20, 2e7))
    assert settled(Ds2(), snapshot_from_json(json.dumps(first))).parallelism == {"flat_map": 10, "count": 20}
    assert settled(Ds2(), snapshot_from_json(json.dumps(second))).parallelism == {}
