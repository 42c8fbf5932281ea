"""Operations of a job reach an OpenTelemetry collector as spans, each once; without an endpoint nothing is loaded."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from otlp_receiver import receiving
from patience import patience
from shown_upgrades import PROBLEM, rolled_back

from evenflow.actors.job.spans import Spans
from evenflow.actors.job.tracing import ENDPOINTS, tracing, variables
from evenflow.balancer.plan import BalanceMove, BalancePlan
from evenflow.engine.errors import RecordError
from evenflow.scheduler.job.view_cursor import ViewCursor
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.failures import failure_of
from evenflow.scheduler.protocol.reports import (
    CheckpointReport,
    CheckpointState,
    MigrationReport,
    MigrationState,
    NodeScalingReport,
    NodeScalingState,
    ScalingReport,
    ScalingState,
    UpgradeState,
)
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView

CHECKPOINT = CheckpointReport(
    number=3,
    state=CheckpointState.COMPLETE,
    reason="the interval is over",
    began_at=100.0,
    seconds=0.5,
    keys=7,
    saved_bytes=70,
    state_bytes=90,
)
PLAN = BalancePlan((BalanceMove(0, 1, group=3),), 1.8, 1.1, 1.0, 4096, "worker 0 is hot")
MOVE = MigrationReport(
    number=1, state=MigrationState.DONE, reason="hotspot, automatic", began_at=101.0, seconds=0.25, operator="count", strategy="batched",
    plan=PLAN, groups=1, routed_keys=0, steps=1, steps_done=1, keys_moved=9, state_bytes=99,
)  # fmt: skip
SCALING = ScalingReport(
    number=0, state=ScalingState.FAILED, reason="by hand", began_at=102.0, seconds=2.0, problem="a worker was lost", operator="count",
    before=2, after=3, keys_moved=4, state_bytes=40,
)  # fmt: skip
NODES = NodeScalingReport(
    number=0, state=NodeScalingState.DONE, reason="congested", began_at=103.0, seconds=1.0, added=("a", "b"), removed=None,
    parallelism={"count": (2, 4)}, replaced=(),
)  # fmt: skip


def view(now=110.0, **parts):
    return JobView(now, JobStatus("clicks", JobState.RUNNING, None, (), 0, now, attempt=2), (), (), **parts)


@pytest.fixture
def receiver(monkeypatch):
    with receiving() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=secret")
        yield found


def test_each_kind_of_change_comes_with_its_facts(receiver):
    traces = tracing("clicks")
    everything = view(checkpoints=(CHECKPOINT,), migrations=(MOVE,), scalings=(SCALING,), node_scalings=(NODES,), upgrades=(rolled_back(),))
    traces.add(everything, ViewCursor().advance(everything))
    traces.close()
    spans = {name: found[0] for name, found in receiver.spans.items()}
    assert set(spans) == {"evenflow checkpoint", "evenflow move", "evenflow scaling", "evenflow node scaling", "evenflow upgrade"}
    checkpoint, move, scaling = (spans[f"evenflow {kind}"] for kind in ("checkpoint", "move", "scaling"))
    assert (checkpoint.begin, checkpoint.end, checkpoint.problem) == (100.0, 100.5, None)
    assert checkpoint.attributes == {
        "evenflow.job": "clicks", "evenflow.number": 3, "evenflow.state": "complete", "evenflow.reason": "the interval is over",
        "evenflow.keys": 7, "evenflow.bytes": 70, "evenflow.state_bytes": 90,
    }  # fmt: skip
    assert (move.begin, move.end) == (101.0, 101.25)
    facts = {name: move.attributes[f"evenflow.{name}"] for name in ("operator", "strategy", "keys", "bytes", "key_groups")}
    assert facts == {"operator": "count", "strategy": "batched", "keys": 9, "bytes": 99, "key_groups": 1}
    ((name, at, expected),) = move.events
    assert (name, at, expected["evenflow.imbalance.before"]) == ("planned", 101.0, 1.8)
    assert scaling.problem == "a worker was lost"
    assert scaling.events == [("problem", 104.0, {"evenflow.message": "a worker was lost"})]
    assert (scaling.attributes["evenflow.workers.before"], scaling.attributes["evenflow.workers.after"]) == (2, 3)
    assert spans["evenflow node scaling"].attributes["evenflow.nodes"] == "a, b"
    upgrade = spans["evenflow upgrade"]
    assert (upgrade.begin, upgrade.end, upgrade.problem) == (100.0, 140.0, PROBLEM)
    facts = {name: upgrade.attributes[f"evenflow.{name}"] for name in ("version", "operators", "canary", "keys", "bytes", "state")}
    assert facts == {"version": 2, "operators": "price, total", "canary": 0.05, "keys": 12, "bytes": 340, "state": "rolled back"}
    assert (receiver.services, receiver.authorized) == ({"evenflow"}, {"secret"})


def test_an_upgrade_that_was_completed_after_a_failure_is_no_error():
    seen = view(upgrades=(rolled_back(state=UpgradeState.DONE),))
    (span,) = Spans().add(seen, ViewCursor().advance(seen))
    assert span.problem is None
    assert [event.attributes for event in span.events] == [{"message": PROBLEM}]


def test_an_operation_that_views_repeat_gives_one_span_when_it_has_ended():
    spans, cursor = Spans(), ViewCursor()
    names = []
    for checkpoint in (replace(CHECKPOINT, seconds=None), CHECKPOINT, CHECKPOINT):
        seen = view(checkpoints=(checkpoint,))
        names.append([span.name for span in spans.add(seen, cursor.advance(seen))])
    assert names == [[], ["evenflow checkpoint"], []]


def test_a_recovery_has_the_failures_that_it_is_for_without_their_records():
    spans, cursor = Spans(), ViewCursor()
    old = failure_of(ValueError("long ago"), 50.0)
    failure = failure_of(RecordError("parse", "no number", key="JFK", record={"n": "x"}), 105.0)
    for now, state in ((104.0, JobState.RUNNING), (105.0, JobState.RESTARTING), (106.5, JobState.RUNNING)):
        spans.note_state(state, now)
    restarted = view(failures=(old, failure))
    (span,) = spans.add(restarted, cursor.advance(restarted))
    assert (span.name, span.begin, span.end, span.attributes) == ("evenflow recovery", 105.0, 106.5, {"attempt": 2})
    (event,) = span.events
    assert event.attributes == {"exception.type": "RecordError", "exception.message": "no number", "operator": "parse"}
    assert spans.add(view(), cursor.advance(view())) == []


def test_a_job_does_not_wait_for_a_collector_that_is_not_there_and_warns(monkeypatch, caplog):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
        traces = tracing("clicks")
        unsent = view(checkpoints=(CHECKPOINT,))
        traces.add(unsent, ViewCursor().advance(unsent))
        traces.close(patience=0.2)
        assert "last spans are lost" in caplog.text
        for thread in threading.enumerate():
            if thread.name == "clicks/traces" or thread.name.startswith("OtelBatch"):
                thread.join(patience(60))  # it retries at random times, which hypothesis would attribute to a test
                assert not thread.is_alive()


def test_without_an_endpoint_there_are_no_traces(monkeypatch):
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    assert (variables(), tracing("clicks")) == ({}, None)
    monkeypatch.setenv(ENDPOINTS[0], "http://127.0.0.1:4318")
    assert variables() == {"OTEL_SERVICE_NAME": "mine", ENDPOINTS[0]: "http://127.0.0.1:4318"}


def test_without_an_endpoint_nothing_of_opentelemetry_is_imported():
    code = (
        "import sys; from evenflow.actors.job.tracing import tracing; import evenflow.actors.job.prometheus; assert tracing('f') is None;"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'google.protobuf', 'requests'))])"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ENDPOINTS}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.strip() == "[]"


def test_packages_that_are_missing_are_a_warning(monkeypatch, caplog):
    monkeypatch.setenv(ENDPOINTS[0], "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert tracing("clicks") is None
    assert "pip install 'evenflow[otel]'" in caplog.text
