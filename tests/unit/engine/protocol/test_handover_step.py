"""The parts of a migration's steps that concern one worker."""

from __future__ import annotations

from evenflow.engine.protocol.handover_step import HandoverStep, partners, steps_by_worker
from evenflow.engine.protocol.routing import Move

STEPS = (
    HandoverStep(1, (Move(0, 1, (0,)), Move(2, 3, (4,)))),
    HandoverStep(2, (Move(0, 1, (1,)), Move(0, 2, (2,))), lazy=True, pause=True),
)


def test_worker_gets_its_own_moves_of_the_steps_that_concern_it():
    assert steps_by_worker(STEPS) == {
        0: (HandoverStep(1, (Move(0, 1, (0,)),)), STEPS[1]),
        1: (HandoverStep(1, (Move(0, 1, (0,)),)), HandoverStep(2, (Move(0, 1, (1,)),), lazy=True, pause=True)),
        2: (HandoverStep(1, (Move(2, 3, (4,)),)), HandoverStep(2, (Move(0, 2, (2,)),), lazy=True, pause=True)),
        3: (HandoverStep(1, (Move(2, 3, (4,)),)),),
    }


def test_partners_are_the_workers_at_the_other_ends_of_moves():
    assert {index: partners(index, steps) for index, steps in steps_by_worker(STEPS).items()} == {0: [1, 2], 1: [0], 2: [0, 3], 3: [2]}
