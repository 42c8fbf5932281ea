"""Every kind of cause for which a job stands still, and the end of each chain of waits."""

from __future__ import annotations

import pytest

from evenflow.scheduler.load.long_call import LongCall
from evenflow.scheduler.load.standstill import Facts, PendingChange, PendingCommit, PendingSave, waits
from evenflow.scheduler.load.wait import Wait, WaitKind

CALL = LongCall(14.0, "score", ("classify (/jobs/shop.py:12)", "read (/lib/socket.py:7)"))
HELD = Wait(WaitKind.WATERMARK, "partition 1 of source `read` holds event time back", 11.0, "read", "read-0", "1")


def texts(facts):
    return [wait.text for wait in waits(facts)]


def test_function_that_has_not_returned_is_named_with_its_stack_even_while_other_workers_go_on():
    (wait,) = waits(Facts(still=0.0, calls={"aggregate-1": CALL}))
    assert wait.text == "operator `score` (worker aggregate-1): classify (/jobs/shop.py:12) has not returned for 14 s"
    assert (wait.kind, wait.operator, wait.worker, wait.seconds) == (WaitKind.FUNCTION, "score", "aggregate-1", 14.0)
    assert str(wait).splitlines()[1:] == ["    classify (/jobs/shop.py:12)", "    read (/lib/socket.py:7)"]


def test_call_without_a_known_stack_names_the_workers_operator():
    assert texts(Facts(9.0, {"read-0": LongCall(6.0)})) == ["operator `read` (worker read-0): a call has not returned for 6 s"]


def test_worker_that_does_not_answer_is_named_with_the_possible_reasons():
    (wait,) = waits(Facts(9.0, {"score-0": LongCall(7.0, answered=False)}))
    assert wait.kind is WaitKind.WORKER
    assert wait.text.startswith("worker score-0 has not answered for 7 s: its process is stopped, or a function keeps")


@pytest.mark.parametrize(
    ("facts", "kind", "text"),
    [
        pytest.param(
            {"change": PendingChange("count", 8.0)},
            WaitKind.MOVE,
            "a move of keys or workers of `count` has paused the stream for 8 s",
            id="a move",
        ),
        pytest.param(
            {"checkpoint": PendingSave(5, 6.0, ("count-0", "count-1"))},
            WaitKind.CHECKPOINT,
            "checkpoint 5 has waited 6 s for its part of worker count-0 and 1 more",
            id="a checkpoint's worker",
        ),
        pytest.param(
            {"checkpoint": PendingSave(5, 6.0, saving=True)},
            WaitKind.CHECKPOINT,
            "checkpoint 5 has waited 6 s for its manifest to be written",
            id="a checkpoint's manifest",
        ),
        pytest.param(
            {"commit": PendingCommit(5, 6.0, ("orders",))},
            WaitKind.COMMIT,
            "the commit of checkpoint 5 to `orders` has not ended for 6 s",
            id="a commit",
        ),
        pytest.param(
            {"blocked": {"read-0": ("count-1",)}},
            WaitKind.CREDIT,
            "worker read-0 has waited 9 s for credit of worker count-1, which takes no rows",
            id="credit",
        ),
        pytest.param({"silent": {"count-1": 9.0}}, WaitKind.WORKER, "worker count-1 has reported nothing for 9 s", id="a silent worker"),
        pytest.param({"held": (HELD,)}, WaitKind.WATERMARK, HELD.text, id="a watermark"),
        pytest.param(
            {"idle": {"read-0": 0, "read-1": None}},
            WaitKind.INPUT,
            "source `read` has no records to read, and has returned none for 9 s",
            id="input",
        ),
        pytest.param(
            {"idle": {"read-0": 1_200}},
            WaitKind.INPUT,
            "source `read` has 1,200 unread records and has returned none for 9 s",
            id="a source that returns nothing",
        ),
    ],
)
def test_each_cause_of_a_job_without_rows_is_named(facts, kind, text):
    (wait,) = waits(Facts(9.0, **facts))
    assert (wait.kind, wait.text) == (kind, text)


def test_function_is_the_cause_if_others_wait_for_credit_or_a_checkpoint():
    blocked, checkpoint = {"read-0": ("map-0",), "map-0": ("score-0",)}, PendingSave(3, 12.0, ("score-0",))
    (wait,) = waits(Facts(14.0, {"score-0": CALL}, blocked, checkpoint=checkpoint, silent={"sink-0": 14.0}))
    assert (wait.kind, wait.worker) == (WaitKind.FUNCTION, "score-0")


def test_last_receiver_of_a_chain_of_waits_for_credit_is_the_cause():
    blocked = {"read-0": ("map-0",), "read-1": ("map-0",), "map-0": ("count-0",)}
    assert texts(Facts(9.0, blocked=blocked)) == ["worker map-0 has waited 9 s for credit of worker count-0, which takes no rows"]


def test_workers_that_wait_for_each_others_credit_are_all_named():
    assert [wait.worker for wait in waits(Facts(9.0, blocked={"a-0": ("b-0",), "b-0": ("a-0",)}))] == ["a-0", "b-0"]


def test_checkpoint_is_the_cause_of_waits_for_credit_behind_its_barrier():
    facts = Facts(9.0, blocked={"read-0": ("join-0",)}, checkpoint=PendingSave(3, 8.0, ("read-1", "join-0")))
    assert [(wait.kind, wait.worker) for wait in waits(facts)] == [(WaitKind.CHECKPOINT, "read-1")]


def test_job_with_rows_waits_for_nothing_whatever_is_under_way():
    facts = Facts(4.9, blocked={"read-0": ("count-0",)}, idle={"read-1": 0}, checkpoint=PendingSave(3, 60.0), commit=PendingCommit(2, 60.0))
    assert waits(facts) == ()


def test_checkpoint_or_commit_that_has_just_begun_is_no_cause():
    facts = Facts(60.0, idle={"read-0": 0}, checkpoint=PendingSave(3, 0.2, ("read-0",)), commit=PendingCommit(2, 0.1))
    assert [wait.kind for wait in waits(facts)] == [WaitKind.INPUT]


def test_worst_causes_are_named_first_and_not_all_of_many():
    calls = {f"score-{index}": LongCall(10.0 + index) for index in range(9)}
    assert [wait.worker for wait in waits(Facts(20.0, calls))] == ["score-8", "score-7", "score-6", "score-5", "score-4"]
