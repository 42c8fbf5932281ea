"""State that running workers of other code have written: read as it is, migrated, or not, in either direction."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest

import evenflow as ef
from evenflow.engine.functions.state_types import described
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning
from evenflow.engine.operators.processing.process import Process
from evenflow.engine.readable_state import readable
from evenflow.engine.state_description import StateDescription


@dataclass
class Item:
    name: str


@dataclass
class Priced:
    name: str
    price: float = 0.0


def function(version=1, migrates=False, **states):
    more = {"migrate_state": lambda self, version, state: state} if migrates else {}
    return type("Carts", (ef.KeyedFunction,), {"on_row": lambda *_: (), "state_version": version, **states, **more})


def description(version=1, *, migrates=False, **states):
    return Process(("k",), function(version, migrates, **states)()).state_description()


PLAIN = description(n=ef.value_state(), seen=ef.list_state())
CASES = {
    "itself": (PLAIN, PLAIN, "same", "same"),
    "the same states in another order": (PLAIN, description(seen=ef.list_state(), n=ef.value_state()), "same", "same"),
    "a version that migrates": (PLAIN, description(2, migrates=True, m=ef.map_state()), "migrated", "unreadable: .*by version 2"),
    "a version that doesn't": (PLAIN, description(2, n=ef.value_state()), "unreadable: .*no migrate_state", "unreadable: .*by version 2"),
    "a renamed state": (
        PLAIN,
        description(n=ef.value_state(), last=ef.list_state(renamed_from="seen")),
        "migrated",
        r"unreadable: state `seen` \(list\) is new; state `last` \(list\) is gone",
    ),
    "a new state": (
        PLAIN,
        description(n=ef.value_state(), seen=ef.list_state(), m=ef.map_state()),
        "unreadable: .*`m` .*new",
        "unreadable",
    ),
    "another kind": (
        PLAIN,
        description(n=ef.list_state(), seen=ef.list_state()),
        "unreadable: state `n` was value and is list",
        "unreadable",
    ),
    "a field with a default": (
        description(item=ef.value_state(type=Item)),
        description(item=ef.value_state(type=Priced)),
        "same",
        r"unreadable: state `item.price` \(float\) is gone",
    ),
    "a type that was renamed too": (
        description(item=ef.value_state(type=Item), itemised=ef.value_state()),
        description(thing=ef.value_state(type=Priced, renamed_from="item"), itemised=ef.value_state()),
        "migrated",
        "unreadable",
    ),
}


@pytest.mark.parametrize(("old", "new", "forth", "back"), CASES.values(), ids=CASES)
def test_code_reads_what_other_code_has_written(old, new, forth, back):
    for found, expected in ((readable(old, new), forth), (readable(new, old), back)):
        assert re.match(expected, found.how if not found.why else f"{found.how}: {found.why}"), found
        assert bool(found.why) == (found.how == "unreadable")


def test_other_keys_are_read_by_no_version():
    migrating = description(2, migrates=True, n=ef.value_state())
    found = readable(PLAIN, replace(migrating, traits={"keys": "other"}))
    assert found.why == "the saved state is of keys k, the operator's of keys other"


def test_aggregates_in_another_order_are_in_other_columns():
    old, new = (AggregateRunning(("k",), {name: ef.sum(name) for name in names}, updates=True) for names in ("ab", "ba"))
    old, new = old.state_description(), new.state_description()
    assert readable(old, old).how == "same"
    assert readable(old, new).why == "its parts were a, b, and are b, a"


@pytest.mark.parametrize("version", [1, 2, 2**32 - 1])
def test_manifest_records_the_version_and_says_nothing_of_the_first(version):
    kind = function(version, n=ef.value_state())
    made = described("a process", {"keys": "k"}, kind)
    assert len(made.packed()) == (4 if version == 1 else 5)
    assert StateDescription.unpacked(made.packed()).version.number == version
