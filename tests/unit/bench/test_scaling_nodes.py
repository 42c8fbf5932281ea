from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.bench.scaling_nodes import TOPOLOGIES, Scaled, _even_limit, flow, scaled_in, scaled_out, throughput, verdicts, without

LINEAR, STAR, DIAMOND = TOPOLOGIES


@pytest.mark.parametrize(("topology", "instances", "nodes"), [(LINEAR, 20, 6), (STAR, 20, 4), (DIAMOND, 36, 6)])
def test_sizes_are_the_published_ones(topology, instances, nodes):
    placed = topology.placed()
    assert sum(map(len, placed.values())) == instances
    assert len({node for several in placed.values() for node in several}) == nodes
    assert sum(map(len, topology.placed(packed=True).values())) == instances


def test_the_slowest_operator_is_what_a_chain_puts_out():
    assert throughput(LINEAR, LINEAR.placed()) == pytest.approx(2000.0)


def test_every_sink_counts_and_both_ways_through_a_diamond():
    _, done = flow(DIAMOND, {name: [1.0] * 6 for name in DIAMOND.rates})
    assert done["sink"] == pytest.approx(6000 + 2400 + 3600 + 6000)


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.name)
def test_a_node_more_brings_more_by_stela_than_by_round_robin(topology):
    found = scaled_out(topology)
    assert found.before < found.round_robin < found.stela


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=lambda topology: topology.name)
def test_stela_takes_one_of_the_nodes(topology):
    found = scaled_in(topology)
    assert len(found.choices) == topology.nodes
    assert min(found.choices) <= found.stela <= found.before


def test_instances_of_a_node_that_leaves_go_to_others():
    moved = without(LINEAR.placed(), "node 2", ["node 0", "node 1"])
    assert {name: len(nodes) for name, nodes in moved.items()} == dict.fromkeys(LINEAR.rates, 4)
    assert "node 2" not in {node for nodes in moved.values() for node in nodes}


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12), st.floats(0.1, 12.0))
def test_a_node_gives_all_its_cores_where_they_are_wanted_and_no_more(wanted, cores):
    limit = _even_limit(wanted, cores)
    used = sum(min(limit, wish) for wish in wanted)
    assert used == pytest.approx(min(sum(wanted), cores))


def test_the_worst_topology_decides():
    found = verdicts({"a, a node more": Scaled(1, 3, 2), "b, a node more": Scaled(1, 2, 2), "a, a node less": Scaled(3, 1, 2, (1, 3))})
    assert [verdict.measured for verdict in found] == [1.0, 0.5]
