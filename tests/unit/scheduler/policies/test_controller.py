"""The times at which a policy is asked, and the outcomes of its decisions."""

from __future__ import annotations

import json

import pytest

from evenflow.engine.errors import RequestError
from evenflow.scheduler.policies.controller import ADVISED, Controller
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot, Edge
from evenflow.scheduler.policies.ds2 import Ds2
from evenflow.scheduler.policies.threshold import ThresholdPolicy


def dataflow(demand: float, workers: int = 1, backlog: float = 0.0, **settings) -> DataflowSnapshot:
    source = OperatorFigures("source", 1, source_rate=demand, queue_records=backlog)
    count = OperatorFigures("count", workers, true_processing_rate=100 * workers)
    return DataflowSnapshot((source, count), (Edge("source", "count"),), PolicySettings(**settings))


def test_it_looks_once_per_interval():
    controller = Controller(Ds2())
    assert controller.observe(0.0, dataflow(100)) is None
    assert not controller.due(9.9)
    assert controller.observe(9.9, dataflow(500)) is None
    assert controller.observe(10.0, dataflow(500)).parallelism == {"count": 5}


def test_while_a_decision_is_carried_out_nothing_is_decided():
    controller = Controller(Ds2())
    assert controller.observe(0.0, dataflow(500)) is not None
    assert not controller.due(1000.0)
    assert controller.observe(1000.0, dataflow(900)) is None


def test_after_a_change_it_warms_up_and_knows_how_long_the_change_took():
    controller = Controller(Ds2())
    controller.observe(0.0, dataflow(500))
    controller.carried_out(4.0)
    assert not controller.due(13.9)
    controller.observe(14.0, dataflow(500, 5))
    assert controller.reconfiguration_s == 4.0
    assert controller.last_observation.seen.reconfiguration_s == 4.0
    assert (controller.last_observation.seen.time, controller.last_observation.done) == (14.0, "nothing to do")


def test_it_keeps_quiet_while_a_backlog_is_worked_off_after_a_change():
    controller = Controller(Ds2())
    controller.observe(0.0, dataflow(500))
    controller.carried_out(1.0)
    asked = []
    for now, backlog in ((11, 40_000), (21, 20_000), (31, 6_000)):
        asked.append(controller.observe(now, dataflow(900, 5, backlog)) is not None)
    assert asked == [False, False, True]


def test_a_backlog_that_would_take_too_long_ends_the_quiet():
    controller = Controller(Ds2())
    controller.observe(0.0, dataflow(500))
    controller.carried_out(1.0)
    assert controller.observe(11.0, dataflow(490, 5, 40_000, catch_up_s=60)) is None
    assert controller.observe(21.0, dataflow(490, 5, 39_900, catch_up_s=60)).parallelism == {"count": 12}


def test_a_backlog_that_grows_ends_the_quiet():
    controller = Controller(Ds2())
    controller.observe(0.0, dataflow(500))
    controller.carried_out(1.0)
    assert controller.observe(11.0, dataflow(900, 5, 40_000)) is None
    assert controller.observe(21.0, dataflow(900, 5, 44_000)).parallelism == {"count": 9}


def test_it_keeps_quiet_while_keys_move():
    controller = Controller(Ds2())
    assert controller.observe(0.0, dataflow(500), moving=True) is None
    assert controller.history == ()
    assert controller.observe(10.0, dataflow(500)) is not None


def test_advice_is_recorded_and_never_handed_out():
    controller = Controller(Ds2(), "advise")
    demands = (500, 500, 700, 500)
    assert [controller.observe(10.0 * look, dataflow(demand)) for look, demand in enumerate(demands)] == [None] * 4
    advice = [(record.time, record.done, record.decided.parallelism["count"]) for record in controller.history]
    assert advice == [(0.0, ADVISED, 5), (20.0, ADVISED, 7), (30.0, ADVISED, 5)], "what repeats the last advice isn't recorded again"
    assert controller.last_observation.time == 30.0


def test_a_failed_change_is_recorded_and_tried_again_after_an_interval():
    controller = Controller(Ds2())
    controller.observe(0.0, dataflow(500))
    controller.not_carried_out(1.0, "the cluster has no room for 4 more workers")
    assert controller.history[0].done == "refused: the cluster has no room for 4 more workers"
    assert not controller.due(10.9)
    assert controller.observe(11.0, dataflow(500)).parallelism == {"count": 5}


def test_a_record_says_what_was_seen_decided_why_and_done():
    controller = Controller(Ds2())
    controller.observe(3.0, dataflow(500))
    controller.carried_out(5.0)
    shown = json.loads(json.dumps(controller.history[0].to_dict()))
    assert shown == {
        "time": 3.0,
        "policy": "ds2",
        "saw": "500 of 500 records/s read; source x 1; count x 1, each does 100 records/s",
        "before": {"count": 1},
        "parallelism": {"count": 5},
        "remove_node": None,
        "rebalance": [],
        "reason": "count needs 5.00 workers and has 1",
        "done": "carried out in 2 s",
    }


def test_only_the_newest_decisions_are_kept():
    controller = Controller(Ds2(), "advise", keep=2)
    for look in range(5):
        controller.observe(10.0 * look, dataflow(500 + 100 * look))
    assert [record.time for record in controller.history] == [30.0, 40.0]


@pytest.mark.parametrize(
    "end", [lambda controller: controller.carried_out(1.0), lambda controller: controller.not_carried_out(1.0, "no room")]
)
def test_the_end_of_a_decision_that_was_never_made_is_refused(end):
    controller = Controller(Ds2())
    with pytest.raises(RequestError, match="no scaling decision is under way"):
        end(controller)
    assert controller.due(0.0)


def test_mode_must_exist():
    with pytest.raises(RequestError, match="mode is 'guess'"):
        Controller(Ds2(), "guess")


def test_it_keeps_quiet_while_what_a_recovery_left_is_worked_off():
    controller = Controller(Ds2())
    controller.observe(0.0, dataflow(100))
    controller.disturbed()
    asked = []
    for now, backlog in ((10, 40_000), (20, 20_000), (30, 6_000)):
        asked.append(controller.observe(now, dataflow(900, 1, backlog)) is not None)
    assert asked == [False, False, True]


def reading(workers, read, demand=300.0, each=100.0):
    """Return a source whose records `count` processes at rate `read`, with workers that could each do `each`."""
    source = OperatorFigures("source", 1, source_rate=demand, observed_output_rate=read)
    count = OperatorFigures("count", workers, true_processing_rate=each * workers, observed_processing_rate=read)
    return DataflowSnapshot((source, count), (Edge("source", "count"),), PolicySettings())


class Recorded:
    """A controller that is shown one snapshot after the other; each decision is carried out at once."""

    def __init__(self, policy):
        self.controller, self.now = Controller(policy), 0.0

    def show(self, snapshot):
        decision = self.controller.observe(self.now, snapshot)
        if decision is not None:
            self.controller.carried_out(self.now)
        self.now += 60.0
        return dict(decision.parallelism) if decision is not None else {}


def test_change_that_made_it_worse_is_rolled_back_and_not_tried_again_while_the_demand_stays():
    ds2 = Recorded(Ds2())
    assert ds2.show(reading(2, 200)) == {"count": 3}
    assert ds2.show(reading(3, 100)) == {}
    assert ds2.show(reading(3, 100)) == {"count": 2}
    assert ds2.show(reading(2, 200)) == {}
    assert ds2.show(reading(2, 200)) == {}
    assert ds2.controller.last_observation.decided.reason.endswith("what would be decided was rolled back at this demand")
    assert ds2.show(reading(2, 200, demand=500.0)) == {"count": 5}
    reasons = [record.decided.reason for record in ds2.controller.history]
    assert reasons[1] == "rolled back: count 2 -> 3 made it worse, sources read 100 records/s"


def test_change_that_helped_stays():
    ds2 = Recorded(Ds2())
    assert ds2.show(reading(2, 200)) == {"count": 3}
    assert [ds2.show(reading(3, 300)) for _ in range(3)] == [{}, {}, {}]


def test_threshold_gives_no_more_workers_to_an_operator_that_the_last_ones_did_not_help():
    threshold = Recorded(ThresholdPolicy())
    grown = threshold.show(reading(2, 200))["count"]
    assert grown > 2
    in_vain = reading(grown, 200, each=200 / grown)
    assert [threshold.show(in_vain) for _ in range(3)] == [{}, {}, {}]
    assert threshold.controller.last_observation.decided.reason.endswith("but more of them brought next to nothing")


def test_threshold_gives_more_where_the_last_ones_helped():
    threshold = Recorded(ThresholdPolicy())
    grown = threshold.show(reading(2, 200))["count"]
    assert threshold.show(reading(grown, 300, demand=900.0))["count"] > grown
