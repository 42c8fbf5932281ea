"""A decision as data and as JSON."""

from __future__ import annotations

import json

import pytest

from evenflow.scheduler.policies.decision import Relocation, ScalingDecision


def test_json_has_the_four_documented_fields():
    assert json.loads(ScalingDecision().to_json()) == {"parallelism": {}, "remove_node": None, "rebalance": [], "reason": ""}


def test_nodes_are_in_the_json_where_there_is_something_to_say():
    shown = ScalingDecision(remove_node="n1", relocate=(Relocation("count", "n1", "n2"),), add_nodes=2).to_dict()
    assert (shown["remove_node"], shown["add_nodes"]) == ("n1", 2)
    assert shown["relocate"] == [{"operator": "count", "source": "n1", "target": "n2"}]


@pytest.mark.parametrize(
    "decision",
    [
        ScalingDecision({"count": 2}),
        ScalingDecision(rebalance=("count",)),
        ScalingDecision(remove_node="n1"),
        ScalingDecision(add_nodes=1),
    ],
)
def test_a_decision_to_do_something_has_changes(decision):
    assert decision.changes
    assert not ScalingDecision(reason="all is well").changes
