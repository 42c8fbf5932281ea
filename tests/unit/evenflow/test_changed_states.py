"""Jobs that continue with code whose states have another shape: what is migrated, and what is refused, and when."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from patience import until

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")
ROWS = [{"user": "ann", "item": "tea", "price": 2.5}, {"user": "bob", "item": "jam", "price": 4.0}]


@dataclass(frozen=True)
class Item:
    name: str
    price: float


@dataclass(frozen=True)
class Priced:
    """An item in the newer code."""

    name: str
    cents: int
    tags: list[str] = field(default_factory=list)


class Carts(ef.KeyedFunction):
    items = ef.list_state(type=Item)
    by_name = ef.map_state(keys=str, type=Item)
    n = ef.value_state(0)

    def on_row(self, key, row, context):
        item = Item(row["item"], row["price"])
        self.items.append(item)
        self.by_name[item.name] = item
        self.n += 1
        return ()


class Shown(ef.KeyedFunction):
    """Newer code; a test gives it states and a migration."""

    state_version = 2

    def on_row(self, key, row, context):
        yield {"user": key, **{name: shown(getattr(self, name)) for name in self.declared_states()}}


def shown(state):
    return str(list(state) if hasattr(state, "append") else dict(state) if hasattr(state, "keys") else state)


def newer(migrate=None, version=2, **states):
    methods = {} if migrate is None else {"migrate_state": migrate}
    return type("Carts", (Shown,), {"state_version": version, **states, **methods})()


def flow_of(add, go):
    """Return a flow that waits behind the rows until `go` is set, then gives them again; and what it emits."""
    found: list[Any] = []

    def rows(_partition: int, position: Any) -> Any:
        if position is None:
            yield ROWS, 1
        while not go.is_set():
            yield None
        if position != 2:
            yield ROWS, 2

    keyed = ef.Dataflow("shop").read(ef.from_generator(rows, poll_every="10ms")).parallelism(1).key_by("user")
    add(keyed).named("carts").write(ef.to_list(found))
    return keyed.flow, found


def saved_by(add, folder):
    """Stop a job that has read all rows; return its savepoint."""
    flow, _ = flow_of(add, threading.Event())
    job = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder / "ck"), interval=None)))
    until(lambda: sum(each.rows_in for each in job.metrics() if each.operator == "carts") == len(ROWS))
    saved = job.savepoint(folder / "saved")
    job.cancel()
    job.wait("30s")
    return saved


def continued(add, savepoint, state="memory", **allowed):
    go = threading.Event()
    go.set()
    flow, found = flow_of(add, go)
    flow.run(runtime="local", parallelism=2, config=ef.JobConfig(state=ef.StateConfig(state)), from_savepoint=savepoint, **allowed).wait(
        "60s"
    )
    return {row.pop("user"): row for row in found}


@pytest.fixture(scope="module")
def saved_carts(tmp_path_factory):
    return saved_by(lambda keyed: keyed.process(Carts()), tmp_path_factory.mktemp("carts"))


@pytest.fixture(scope="module")
def saved_totals(tmp_path_factory):
    def add(total, row):
        return (total or 0.0) + row["price"], None

    return saved_by(lambda keyed: keyed.stateful_map(add), tmp_path_factory.mktemp("totals"))


def in_cents(self, version, state):
    assert (version, state["items"]) == (1, [{"name": item["name"], "price": item["price"]} for item in state["by_name"].values()])
    del state["by_name"], state["n"]
    return {"items": [Priced(item["name"], int(item["price"] * 100)) for item in state["items"]], "spent": 7}


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_states_are_migrated_from_plain_values_without_allowing_new_and_lost_ones(saved_carts, backend):
    states = {"items": ef.list_state(type=Priced), "spent": ef.value_state(0), "more": ef.map_state(), "none": ef.value_state("default")}
    found = continued(lambda keyed: keyed.process(newer(in_cents, **states)), saved_carts, backend)
    assert found == {
        "ann": {"items": "[Priced(name='tea', cents=250, tags=[])]", "spent": "7", "more": "{}", "none": "default"},
        "bob": {"items": "[Priced(name='jam', cents=400, tags=[])]", "spent": "7", "more": "{}", "none": "default"},
    }


def test_plain_values_are_taken_for_declared_types(saved_carts):
    def migrate(self, version, state):
        return {"items": [{"name": "a", "cents": 5}, {"name": "b", "cents": 6, "tags": ["x"]}]}

    found = continued(lambda keyed: keyed.process(newer(migrate, items=ef.list_state(type=Priced))), saved_carts)
    assert found["ann"] == {"items": "[Priced(name='a', cents=5, tags=[]), Priced(name='b', cents=6, tags=['x'])]"}


def test_renamed_states_are_restored_under_their_new_names(saved_carts):
    states = {
        "goods": ef.list_state(type=Item, renamed_from="items"),
        "names": ef.map_state(keys=str, type=Item, renamed_from="by_name"),
        "count": ef.value_state(0, renamed_from="n"),
    }
    found = continued(lambda keyed: keyed.process(newer(version=1, **states)), saved_carts)
    tea = "Item(name='tea', price=2.5)"
    assert found["ann"] == {"goods": f"[{tea}]", "names": f"{{'tea': {tea}}}", "count": "1"}


def test_migration_gets_renamed_states_under_their_new_names(saved_carts):
    def migrate(self, version, state):
        assert sorted(state) == ["by_name", "count", "items"]
        return {"count": state["count"] + 10}

    found = continued(lambda keyed: keyed.process(newer(migrate, count=ef.value_state(0, renamed_from="n"))), saved_carts)
    assert found == {"ann": {"count": "11"}, "bob": {"count": "11"}}


def total_in_cents(state, row):
    return state, {"user": row["user"], "state": str(state)}


MAPS = {
    "to a type": (Priced, lambda version, state: Priced("all", int(state * 100)), "Priced(name='all', cents=250, tags=[])"),
    "to plain values of it": (Priced, lambda version, state: {"name": "all", "cents": 1}, "Priced(name='all', cents=1, tags=[])"),
    "to another value": (None, lambda version, state: (version, state), "(1, 2.5)"),
    "to none": (None, lambda version, state: None, "None"),
}


@pytest.mark.parametrize(("kind", "migrate", "expected"), MAPS.values(), ids=MAPS)
@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_state_of_stateful_map_is_migrated(saved_totals, kind, migrate, expected, backend):
    def add(keyed):
        return keyed.stateful_map(total_in_cents, state=kind, state_version=2, migrate_state=migrate)

    assert continued(add, saved_totals, backend)["ann"] == {"state": expected}


def read_itself(self, version, state):
    return {"n": self.n}


BAD = {
    "raises": (lambda self, version, state: 1 / 0, r"raised ZeroDivisionError"),
    "returns none": (lambda self, version, state: None, r"returned None \(NoneType\), expected a dict of states by name"),
    "returns another state": (lambda self, version, state: {"m": 1}, r"returned a state 'm', and the states of Carts are n, items"),
    "returns another type": (lambda self, version, state: {"items": [5]}, r"the state `items` is declared as list\[Priced\]: .* got 5"),
    "returns an object of the old class": (lambda self, version, state: {"items": [Item("tea", 2.5)]}, r"expected Priced, got Item"),
    "leaves a field": (
        lambda self, version, state: {"items": [{"name": "a", "cents": 1, "price": 2.5}]},
        r"has no field 'price': remove it",
    ),
    "returns no list": (
        lambda self, version, state: {"items": 5},
        r"the state `items` is declared as list\[Priced\]: expected list\[Priced\]",
    ),
    "returns what can't be saved": (lambda self, version, state: {"n": len}, r"the state `n` can't be saved: .*builtin_function_or_method"),
    "reads itself": (read_itself, "it reads or writes a state by `self`: use the dict"),
}


@pytest.mark.parametrize(("migrate", "problem"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_failing_migration_stops_the_job_and_names_operator_key_and_versions(saved_carts, migrate, problem, backend):
    function = newer(migrate, n=ef.value_state(0), items=ef.list_state(type=Priced))
    begin = r"(?s)operator `carts`: migrate_state of `Carts`, from version 1 to version 2: "
    with pytest.raises(ef.RecordError, match=rf"{begin}.*{problem}.*key: '(ann|bob)'"):
        continued(lambda keyed: keyed.process(function), saved_carts, backend)


BAD_MAPS = {
    "raises": (lambda version, state: state["n"], r"raised TypeError"),
    "returns another type": (lambda version, state: 5, r"the state is declared as Priced: expected Priced, got 5"),
}


@pytest.mark.parametrize(("migrate", "problem"), BAD_MAPS.values(), ids=BAD_MAPS)
def test_failing_migration_of_stateful_map_stops_the_job(saved_totals, migrate, problem):
    def add(keyed):
        return keyed.stateful_map(total_in_cents, state=Priced, state_version=2, migrate_state=migrate)

    with pytest.raises(
        ef.RecordError, match=rf"(?s)`carts`: migrate_state of `total_in_cents`, from version 1 to version 2: .*{problem}.*key"
    ):
        continued(add, saved_totals)


REFUSED = {
    "no migrate_state": (newer(n=ef.value_state(0)), r"written by version 1 of `Carts`, this code has version 2 and no migrate_state"),
    "another kind": (newer(version=1, m=ef.list_state(renamed_from="n")), r"state `m` was value and is list"),
}


@pytest.mark.parametrize(("function", "problem"), REFUSED.values(), ids=REFUSED)
def test_unreadable_state_is_refused_before_anything_starts(saved_carts, function, problem):
    with pytest.raises(ef.FlowError, match=rf"job `shop` can't begin from .*operator `carts`: .*{problem}"):
        continued(lambda keyed: keyed.process(function), saved_carts)


class Both(Carts):
    """Code in which one state has both names; a later one says that it was renamed."""

    old = ef.value_state(1)
    new = ef.value_state(2)

    def on_row(self, key, row, context):
        self.old, self.new = self.old, self.new
        return ()


class OneOfBoth(Carts):
    new = ef.value_state(2, renamed_from="old")


@pytest.mark.slow
def test_state_that_was_saved_under_both_names_is_refused(tmp_path):
    saved = saved_by(lambda keyed: keyed.process(Both()), tmp_path)
    with pytest.raises(ef.FlowError, match="operator `carts`: state `new` was renamed from `old`, and both are in the saved state"):
        continued(lambda keyed: keyed.process(OneOfBoth()), saved, allow_lost_state=True)


@pytest.mark.slow
def test_newer_state_is_read_by_that_code_and_as_a_table_and_refused_by_older_code(tmp_path):
    saved = saved_by(lambda keyed: keyed.process(SavesSix()), tmp_path)
    assert continued(lambda keyed: keyed.process(SavesSix()), saved) == {"ann": {"n": 6}, "bob": {"n": 6}}
    assert "6" in str(ef.read_savepoint(saved).state("carts")["state"].to_pylist())
    with pytest.raises(
        ef.FlowError, match="operator `carts`: the state was written by version 3 of `Carts`, this code has version 2: start"
    ):
        continued(lambda keyed: keyed.process(newer(lambda self, version, state: state, n=ef.value_state(0))), saved)
    with pytest.raises(
        ef.FlowError, match="operator `carts`: the state was written by version 3 of `Carts`, this code has version 1: start"
    ):
        continued(lambda keyed: keyed.process(newer(version=1, n=ef.value_state(0))), saved, allow_lost_state=True)


class SavesSix(ef.KeyedFunction):
    state_version = 3
    n = ef.value_state(5)

    def on_row(self, key, row, context):
        self.n = 6
        yield {"user": key, "n": self.n}


@pytest.mark.slow
def test_table_needs_a_checkpoint_of_the_newer_code(tmp_path):
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "ck"), interval=None))

    def started(function):
        flow, _ = flow_of(lambda keyed: keyed.process(function), threading.Event())
        job = flow.run(runtime="local", parallelism=2, config=config)
        until(lambda: job.status().state == "running")
        return job

    job = started(Carts())
    until(lambda: sum(each.rows_in for each in job.metrics() if each.operator == "carts") == len(ROWS))
    job.stop()
    job.wait("30s")
    job = started(newer(lambda self, version, state: {"m": state["n"] + 1}, m=ef.value_state(0)))
    with pytest.raises(ef.RequestError, match=r"has completed no checkpoint since it began: .*fresh=True"):
        job.table("carts")
    assert sorted(job.table("carts", fresh=True)["m"].to_pylist()) == [2, 2]
    assert job.read("carts", "ann") == {"m": 2}
    job.cancel()
    job.wait("30s")


def keyed():
    return ef.Dataflow("shop").read(ef.from_items(ROWS)).key_by("user")


def same(version, state):
    return state


def method(self, version, state):
    return state


WRONG = {
    "zero": (lambda: keyed().process(newer(version=0)), r"process\(Carts\(\)\): state_version is 0: expected an int of at least 1"),
    "a text": (lambda: keyed().process(newer(version="2")), r"state_version is '2': expected an int"),
    "a truth": (lambda: keyed().process(newer(version=True)), r"state_version is True: expected an int"),
    "a huge one": (lambda: keyed().process(newer(version=2**32)), r"at most 4,294,967,295"),
    "no new version": (lambda: keyed().process(newer(method, 1)), r"migrate_state would never be called, because state_version is 1"),
    "arguments": (lambda: keyed().process(newer(lambda self, state: state)), r"Carts.migrate_state\(.*takes \(state\)"),
    "a name of two": (
        lambda: keyed().process(newer(a=ef.value_state(), b=ef.value_state(renamed_from="a"))),
        r"the state `b` is renamed from `a`, which is a state too",
    ),
    "a name for two": (
        lambda: keyed().process(newer(a=ef.value_state(renamed_from="c"), b=ef.map_state(renamed_from="c"))),
        r"the states `a` and `b` are both renamed from `c`",
    ),
    "no name": (lambda: keyed().process(newer(a=ef.list_state(renamed_from="a b"))), r"renamed_from='a b': expected the name of an attr"),
    "a map's zero": (lambda: keyed().stateful_map(total_in_cents, state_version=0), r"stateful_map\(total_in_cents\): state_version is 0"),
    "a map's version": (lambda: keyed().stateful_map(total_in_cents, migrate_state=same), r"total_in_cents\): migrate_state would never"),
    "a map's arguments": (
        lambda: keyed().stateful_map(total_in_cents, state_version=2, migrate_state=method),
        r"stateful_map\(total_in_cents\): migrate_state\(method\): it takes \(self, version, state\)",
    ),
}


@pytest.mark.parametrize(("write", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_versions_are_refused_when_the_flow_is_written(write, problem):
    with pytest.raises(ef.FlowError, match=problem):
        write()


def test_functions_of_two_streams_have_versions_too():
    class Joined(ef.CoKeyedFunction):
        state_version = 0

        def on_left(self, key, row, context):
            return ()

        on_right = on_left

    with pytest.raises(ef.FlowError, match=r"co_process\(Joined\(\)\): state_version is 0"):
        (one := keyed()).co_process(one, Joined())
