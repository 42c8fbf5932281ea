"""Pages act on jobs: actions are previewed before they run, and strangers are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from serving_pages import message, with_server

from evenflow.engine.dropped_records import DroppedRecord
from evenflow.engine.errors import RecordError, RequestError
from evenflow.engine.functions.measures import Measured
from evenflow.engine.protocol.routing import even_table
from evenflow.page.actions import Sample, begun, previewed, request_of
from evenflow.page.guard import PROOF, Guard
from evenflow.page.hub import Hub
from evenflow.page.live import Live
from evenflow.page.messages import Viewed
from evenflow.scheduler.load.dropped_records import DroppedRecordAt
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.dataflow.scaled_stage import ScaledStage
from evenflow.scheduler.policies.nodes.placement import ClusterNode, ClusterView, WorkerPlace
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.failures import failure_of
from evenflow.scheduler.protocol.requests import MoveKeys, Rebalance, Scale, ScaleIn, ScaleOut, Stop, TakeCheckpoint, TakeSavepoint
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView, StageView
from evenflow.views.policy_snapshots import PolicySnapshots

REBALANCE = {"job": "clicks", "action": "rebalance", "operator": "count", "policy": "hotspot"}


@pytest.fixture
def view():
    """Return a view of a source and an operator of two workers; the first has most of the load."""
    table, windows = even_table(8, 2), [WorkerWindow("read-0", 9.0, 1.0, rows_in=100, useful=0.1)]
    for worker, load in enumerate((0.8, 0.2)):
        groups = np.flatnonzero(table.groups == worker).astype(np.int32)
        windows.append(WorkerWindow(f"count-{worker}", 9.0, 1.0, 50, useful=load, groups=groups, load=np.full(4, load / 4)))
    stages = (
        StageView("read", ("read",), ("read-0",), ("count",), True, scaled=ScaledStage("read", 1, ("count",), True, fixed=True)),
        StageView("count", ("count",), ("count-0", "count-1"), (), False, table, scaled=ScaledStage("count", 2, key_groups=8)),
    )
    status = JobStatus("clicks", JobState.RUNNING, None, ("read-0", "count-0", "count-1"), 3, 10.0)
    return JobView(10.0, status, stages, tuple(windows))


@pytest.fixture
def snapshots(view):
    found = PolicySnapshots()
    found.add(view)
    return found


class Acted:
    """A job that notes what it is asked for."""

    def __init__(self):
        self.asked = []

    async def __call__(self, job, request):
        self.asked.append((job, request))
        if isinstance(request, Stop):
            raise RequestError("it is stopping already")
        return {"done": begun(request, 7)}


def served(view, test, *, allowed=True):
    """Run `test(browser)` against a page of the job; what the job was asked for."""
    guard, acted = Guard(allow_actions=allowed), Acted()
    hub = Hub("clicks", actions=guard.action_token)
    hub.receive(Viewed("clicks", view))
    with_server(Live(hub, acted if allowed else None), test, guard)
    return acted.asked


def test_an_action_reaches_the_job_and_its_answer_the_page(view):
    async def test(browser):
        response = await browser.act("/act", REBALANCE)
        assert (response.status, await response.json()) == (200, {"done": "Migration 7 has begun."})
        refused = await browser.act("/act", {"job": "clicks", "action": "stop"})
        assert await refused.json() == {"problem": "it is stopping already"}

    assert served(view, test) == [("clicks", Rebalance("count", "hotspot")), ("clicks", Stop())]


@pytest.mark.parametrize("path", ["/act", "/preview"])
def test_a_read_only_page_can_change_nothing(view, path):
    async def test(browser):
        for headers in ({}, {PROOF: "guess"}):
            response = await browser.act(path, REBALANCE, **headers)
            assert response.status == 403
            assert "--allow-actions" in await response.text()
        assert (await message(await browser.events()))["actions"] is None

    assert served(view, test, allowed=False) == []


@pytest.mark.parametrize("path", ["/act", "/preview"])
@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (403, {PROOF: ""}),
        (403, {PROOF: "guess"}),
        (403, {"Origin": "http://evil.example"}),
        (403, {"Origin": "null"}),
        (403, {"Sec-Fetch-Site": "cross-site"}),
        (403, {"Sec-Fetch-Site": "same-site"}),
        (403, {"Host": "evil.example"}),
        (401, {"Cookie": ""}),
    ],
)
def test_requests_from_elsewhere_than_the_page_do_nothing(view, path, status, headers):
    async def test(browser):
        response = await browser.act(path, REBALANCE, **headers)
        assert response.status == status

    assert served(view, test) == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_no_other_method_acts(view, method):
    async def test(browser):
        response = await browser.ask("/act", method, **{PROOF: browser.guard.action_token})
        assert response.status == 405

    assert served(view, test) == []


def test_only_the_page_gets_the_token_for_its_actions(view):
    async def test(browser):
        assert (await message(await browser.events()))["actions"] == browser.guard.action_token
        assert (await browser.ask("/events", stranger=True)).status == 401
        assert (await browser.ask("/events", Sec_Fetch_Site="cross-site")).status == 403

    served(view, test)


@pytest.mark.parametrize("body", [[], "rebalance", None])
def test_a_body_that_is_no_object_is_refused(view, body):
    async def test(browser):
        assert (await browser.act("/act", body)).status == 400

    assert served(view, test) == []


def test_jobs_that_are_not_there_are_not_found(view):
    async def test(browser):
        assert (await browser.act("/act", {**REBALANCE, "job": "orders"})).status == 404

    assert served(view, test) == []


@pytest.mark.parametrize(
    ("body", "request_"),
    [
        (
            {"action": "migrate", "operator": "count", "groups": "0-2,5", "keys": "JFK 7", "to": 1},
            MoveKeys("count", (0, 1, 2, 5), ("JFK", 7), 1),
        ),
        ({"action": "scale", "operator": "read", "workers": 3}, Scale("read", 3)),
        ({"action": "add_nodes", "nodes": 2}, ScaleOut(2)),
        ({"action": "give_back"}, ScaleIn()),
        ({"action": "checkpoint"}, TakeCheckpoint()),
        ({"action": "savepoint", "path": "s3://bucket/saved"}, TakeSavepoint("s3://bucket/saved")),
        ({"action": "savepoint", "path": "/saved"}, TakeSavepoint("/saved")),
        ({"action": "sample", "worker": "count-1"}, Sample("count-1")),
    ],
)
def test_a_page_sends_what_the_command_line_does(snapshots, body, request_):
    assert request_of(snapshots, body) == request_


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "None is no action"),
        ({"action": "cancel"}, "'cancel' is no action"),
        ({"action": "rebalance", "operator": "read", "policy": "lpt"}, "no operator `read` with keyed state"),
        ({"action": "rebalance", "operator": "count"}, "policy is missing"),
        ({"action": "migrate", "operator": "count", "to": 1}, "name what to move"),
        ({"action": "migrate", "operator": "count", "groups": "x", "to": 1}, "must be like 0-99,120"),
        ({"action": "migrate", "operator": "count", "groups": 5, "to": 1}, "must be like 0-99,120"),
        ({"action": "migrate", "operator": "count", "groups": "8", "to": 1}, "no key group 8: its groups are 0 to 7"),
        ({"action": "migrate", "operator": "count", "groups": "1", "to": 2}, "no worker 2: its workers are 0 to 1"),
        ({"action": "migrate", "operator": "count", "groups": "1", "to": "1"}, "to is '1': it must be a whole number"),
        ({"action": "scale", "operator": "count", "workers": 0}, "workers is 0"),
        ({"action": "scale", "operator": "nothing", "workers": 2}, "no operator `nothing`"),
        ({"action": "add_nodes", "nodes": 0}, "nodes is 0"),
        ({"action": "savepoint", "path": " "}, "path is missing"),
        ({"action": "sample", "worker": "count-2"}, "no worker `count-2`; there are: read-0, count-0, count-1"),
    ],
)
def test_the_error_of_an_impossible_request_names_its_field(snapshots, body, message):
    with pytest.raises(RequestError, match=message):
        request_of(snapshots, body)


def test_a_rebalance_shows_its_plan_first(snapshots):
    plan = previewed(snapshots, REBALANCE)()["plan"]
    assert plan["before"] == pytest.approx(1.6)
    assert plan["after"] < plan["before"]
    assert plan["groups"] == len(plan["moves"]) > 0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"action": "migrate", "operator": "count", "groups": "2-5", "to": 1}, "2 from count-0; 2 are already there"),
        ({"action": "scale", "operator": "count", "workers": 1}, "4 key groups of those that leave"),
        ({"action": "scale", "operator": "count", "workers": 2}, "nothing would change"),
        ({"action": "scale", "operator": "read", "workers": 2}, "can't be scaled"),
        ({"action": "checkpoint"}, "completed 3 checkpoints"),
        ({"action": "stop"}, "Then the job ends"),
        ({"action": "sample", "worker": "count-0"}, "count-0's process for 5 s"),
    ],
)
def test_other_actions_show_their_effect_first(snapshots, body, text):
    assert text in previewed(snapshots, body)()["text"]


@pytest.fixture
def placed(view):
    """On one of two nodes; count is congested."""
    source, count = view.stages
    stages = (replace(source, scaled=replace(source.scaled, rate=1_000.0)), count)
    windows = tuple(replace(w, rows_out=100) if w.worker == "read-0" else replace(w, useful=1.0) for w in view.windows)
    places = {worker: WorkerPlace(worker, "aaaaaaaa11") for worker in view.status.workers}
    nodes = (ClusterNode("aaaaaaaa11", 4.0, 1.0, 3), ClusterNode("bbbbbbbb22", 4.0, 4.0), ClusterNode("cccccccc33", 4.0, 0.0))
    return replace(view, stages=stages, windows=windows, cluster=ClusterView(nodes, places), worker_cpus=1.0)


def test_more_nodes_are_planned_as_the_job_would(placed):
    snapshots = PolicySnapshots()
    snapshots.add(placed)
    plan = snapshots.placed().more_nodes(1, "stela")
    assert (plan.added, list(plan.parallelism)) == (("bbbbbbbb22",), ["count"])
    text = previewed(snapshots, {"action": "add_nodes", "nodes": 1})()["text"]
    before, after = plan.parallelism["count"]
    assert text.startswith(f"Adds node bbbbbbbb: count goes from {before} to {after} workers. Why: ")
    text = previewed(snapshots, {"action": "add_nodes", "nodes": 2})()["text"]
    assert text.endswith(
        "1 of 2 nodes that it has no workers on have room. The job asks Ray's autoscaler, if there is one, and waits for them."
    )
    with pytest.raises(RequestError, match="its workers are on 1, and one has to stay"):
        previewed(snapshots, {"action": "give_back"})


def test_a_node_is_given_back_as_the_job_would(placed):
    places = {**placed.cluster.places, "count-1": WorkerPlace("count-1", "bbbbbbbb22")}
    snapshots = PolicySnapshots()
    snapshots.add(replace(placed, cluster=replace(placed.cluster, places=places)))
    text = previewed(snapshots, {"action": "give_back"})()["text"]
    assert text.startswith("Gives back node bbbbbbbb: count goes from 2 to 1 workers. Why: sums of ETPs")


def test_a_job_without_nodes_says_so(snapshots):
    with pytest.raises(RequestError, match="runs in one process and has no nodes"):
        previewed(snapshots, {"action": "add_nodes", "nodes": 1})


def test_the_page_gets_the_node_of_each_worker(placed):
    places = {**placed.cluster.places, "count-1": WorkerPlace("count-1", "bbbbbbbb22")}

    async def test(browser):
        told = await message(await browser.events())
        assert [(node["name"], node["workers"]) for node in told["nodes"]] == [
            ("aaaaaaaa", ["read-0", "count-0"]), ("bbbbbbbb", ["count-1"]), ("cccccccc", []),
        ]  # fmt: skip
        assert told["graph"]["stages"][1]["nodes"] == [["aaaaaaaa", 1], ["bbbbbbbb", 1]]
        found = await (await browser.ask("/workers?job=clicks&operator=count")).json()
        assert [one["node"] for one in found["workers"]] == ["aaaaaaaa", "bbbbbbbb"]

    served(replace(placed, cluster=replace(placed.cluster, places=places)), test)


def test_every_policy_says_what_it_would_do(view):
    async def test(browser):
        found = await (await browser.ask("/balancers?job=clicks&operator=count")).json()
        assert [plan["policy"] for plan in found["plans"]] == ["hotspot", "lpt"]
        assert found["plans"][0]["before"] == pytest.approx(1.6)
        scalers = await (await browser.ask("/scalers?job=clicks")).json()
        told = {plan["policy"]: plan for plan in scalers["plans"]}
        assert told["ds2"]["reason"]
        assert "latency_target" in told["queueing"]["problem"]

    assert served(view, test, allowed=False) == []


def test_policies_decide_by_the_settings_that_the_job_gave_them(view):
    async def test(browser):
        scalers = await (await browser.ask("/scalers?job=clicks")).json()
        told = {plan["policy"]: plan for plan in scalers["plans"]}
        assert "1 processors are too few" in told["queueing"]["reason"]

    served(replace(view, own_settings={"queueing": {"processors": 1}}), test, allowed=False)


def test_a_question_without_answer_is_a_sentence(view):
    async def test(browser):
        found = await (await browser.ask("/balancers?job=clicks&operator=read")).json()
        assert "no operator `read` with keyed state" in found["problem"]
        assert (await browser.ask("/workers?job=orders")).status == 404

    served(view, test)


def test_the_workers_of_an_operator_are_listed_one_by_one(view):
    async def test(browser):
        found = await (await browser.ask("/workers?job=clicks&operator=count")).json()
        assert [(one["name"], one["busy"], one["groups"], one["in"]) for one in found["workers"]] == [
            ("count-0", 0.8, 4, 50),
            ("count-1", 0.2, 4, 50),
        ]

    served(view, test)


def test_the_page_gets_the_metrics_of_functions(view):
    measured = (Measured("count", "rejected", "counter", 3.0), Measured("count", "seconds", "histogram", 3.0, (1.0,), (1, 1)))
    windows = tuple(replace(one, measured=measured) if one.worker == "count-1" else one for one in view.windows)

    async def test(browser):
        found = await (await browser.ask("/workers?job=clicks&operator=count")).json()
        assert found["measured"] == [
            {"worker": "count-1", "operator": "count", "name": "rejected", "kind": "counter", "value": 3.0, "count": 0},
            {"worker": "count-1", "operator": "count", "name": "seconds", "kind": "histogram", "value": 1.5, "count": 2},
        ]

    served(replace(view, windows=windows), test)


def test_the_page_gets_the_records_that_an_operator_dropped(view):
    left = DroppedRecordAt(9.5, "count-1", DroppedRecord("count", "refused", "{'n': '<b>'}", "'JFK'", "ValueError: no number"))

    async def test(browser):
        found = await (await browser.ask("/workers?job=clicks&operator=count")).json()
        assert found["dropped"] == [
            {
                "time": 9.5, "worker": "count-1", "operator": "count", "kind": "refused",
                "record": "{'n': '<b>'}", "key": "'JFK'", "error": "ValueError: no number",
            }
        ]  # fmt: skip
        (failed,) = (await (await browser.ask("/workers?job=clicks&operator=read")).json())["dropped"]
        assert (failed["kind"], failed["key"], failed["record"], failed["error"]) == (
            "failed",
            "'JFK'",
            "{'n': 'x'}",
            "RecordError: no number",
        )

    failure = failure_of(RecordError("read", "no number", key="JFK", record={"n": "x"}), 5.0)
    served(replace(view, dropped_records=(left,), failures=(failure,)), test)


def test_the_page_gets_failures(view):
    failure = failure_of(RecordError("parse", "no number", key="JFK", record={"n": "x"}), 5.0)

    async def test(browser):
        told = (await message(await browser.events()))["status"]["failures"]
        assert [(one["operator"], one["key"], one["text"]) for one in told] == [("parse", "'JFK'", "no number")]

    served(replace(view, failures=(failure,)), test)
