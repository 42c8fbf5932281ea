"""The same seed gives the same accidents and changes, whatever time does."""

from __future__ import annotations

from collections import Counter

from evenflow.testing.chaos.chaos import Script

KINDS, CHANGES = ("worker", "coordinator", "query"), ("move", "scale")


def test_each_kind_comes_once_before_one_comes_again():
    script = Script(3, KINDS, CHANGES)
    kinds = [script.kind(step) for step in range(30)]
    assert all(set(kinds[turn : turn + 3]) == set(KINDS) for turn in range(0, 30, 3))
    changes = [script.change(step) for step in range(40)]
    assert changes[::2] == [None] * 20
    assert Counter(changes[1::2]) == {"move": 10, "scale": 10}


def test_random_numbers_of_one_step_do_not_affect_another():
    script, again = Script(3, KINDS, CHANGES), Script(3, KINDS, CHANGES)
    for _ in range(5):
        script.chance(0, "step").random()
    assert [script.kind(step) for step in range(20)] == [again.kind(step) for step in range(20)]
    assert script.chance(4, "step").random() == again.chance(4, "step").random()
    assert script.chance(4, "step").random() != again.chance(5, "step").random()


def test_different_seeds_give_different_scripts():
    assert [Script(1, KINDS, ()).kind(step) for step in range(20)] != [Script(2, KINDS, ()).kind(step) for step in range(20)]


def test_without_changes_there_are_none():
    assert [Script(1, KINDS, ()).change(step) for step in range(4)] == [None] * 4
