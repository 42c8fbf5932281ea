"""States of declared types in jobs: what is refused, and when; what is read; and what happens when a class has changed."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass, field, make_dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from patience import until

import evenflow as ef
from evenflow.cli import main

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")
ROWS = [{"user": "ann", "item": "tea", "price": 2.5}, {"user": "bob", "item": "jam", "price": 4.0}]


@dataclass(frozen=True)
class Item:
    name: str
    price: float


@dataclass(slots=True)
class Cart:
    items: list[Item] = field(default_factory=list)
    totals: np.ndarray = field(default_factory=lambda: np.zeros(2))


class Carts(ef.KeyedFunction):
    cart = ef.value_state(Cart(), type=Cart)
    newest = ef.value_state(type=Item)
    items = ef.list_state(type=Item)
    names = ef.map_state(keys=str, type=Item)
    plain = ef.value_state()

    def __init__(self, act=lambda self, item: None):
        self.act = act

    def on_row(self, key, row, context):
        item = Item(row["item"], row["price"])
        cart = self.cart
        cart.items.append(item)
        cart.totals += row["price"]
        self.cart, self.newest = cart, item
        self.items.append(item)
        self.names[item.name] = item
        self.act(self, item)
        yield {"user": key, "n": len(self.cart.items)}


def carts(state: Cart | None, row: dict[str, Any]):
    state = state or Cart()
    state.items.append(Item(row["item"], row["price"]))
    return state, {"n": len(state.items)}


def keyed(rows=ROWS):
    return ef.Dataflow("shop").read(ef.from_items(rows)).key_by("user")


def run(stream, **config):
    out: list[dict[str, Any]] = []
    stream.named("carts").write(ef.to_list(out))
    stream.flow.run(runtime="local", config=ef.JobConfig(**config)).wait("60s")
    return out


def put(name, value):
    return lambda function, item: setattr(function, name, value)


WRONG = {
    "a value": (put("cart", Item("tea", 2.5)), r"`cart` is declared as Cart: expected Cart, got Item\(.*\) \(Item\)"),
    "a field": (put("cart", Cart([Item("tea", "2")])), r"Cart.items: list\[Item\]: Item.price: expected float, got '2' \(str\)"),
    "an element": (lambda function, item: function.items.append(5), r"`items` is declared as Item: expected Item, got 5 \(int\)"),
    "a place": (lambda function, item: function.items.__setitem__(0, 5), r"`items` is declared as Item: expected Item, got 5"),
    "a slice": (lambda function, item: function.items.__setitem__(slice(0, 0), [5]), r"`items` is declared as list\[Item\]"),
    "a list": (put("items", [Item("tea", 2.5), 5]), r"`items` is declared as list\[Item\]: .* got 5 \(int\)"),
    "a key": (lambda function, item: function.names.__setitem__(5, item), r"`names` is declared as str: expected str, got 5"),
    "an entry": (lambda function, item: function.names.__setitem__("tea", 5), r"`names` is declared as Item: expected Item, got 5"),
    "a map": (put("names", {"tea": 5}), r"`names` is declared as dict\[str, Item\]: .* got 5"),
    "in place": (lambda function, item: function.cart.items.append(5), r"`cart` is declared as Cart: Cart.items: .* got 5"),
    "objects": (put("cart", Cart(totals=np.array([None]))), r"Cart.totals: expected ndarray of numbers.*, got one of object"),
}


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize(("act", "problem"), WRONG.values(), ids=WRONG)
def test_value_of_another_type_is_refused_when_it_is_written(act, problem, on_error):
    if on_error == "stop":
        with pytest.raises(ef.RecordError, match=rf"(?s)operator `carts`: .*{problem}.*key: 'ann'.*record: .*'tea'"):
            run(keyed().process(Carts(act)))
    else:
        bad = ROWS[0] | {"item": "bad"}
        good = run(keyed([*ROWS, bad, *ROWS]).process(Carts(lambda f, item: act(f, item) if item.name == "bad" else None), on_error="skip"))
        assert [row["n"] for row in good] == [1, 1, 2, 2]


def test_none_is_no_value_of_a_state_without_a_default():
    def forget(function, item):
        function.newest = None
        assert function.newest is None

    assert len(run(keyed().process(Carts(forget)))) == 2


@pytest.mark.parametrize("backend", ["memory", "lmdb"])
def test_wrong_state_of_stateful_map_is_refused(backend):
    def wrong(state, row):
        return Cart([Item("tea", 1)]) if row["user"] == "ann" else Item("tea", 1.0), None

    with pytest.raises(ef.RecordError, match=r"(?s)`carts`: .*wrong: the state is declared as Cart: expected Cart, got Item.*key: 'bob'"):
        run(keyed().stateful_map(wrong, state=Cart), state=ef.StateConfig(backend))
    assert run(keyed([*ROWS, *ROWS]).stateful_map(carts, state=Cart), state=ef.StateConfig(backend))[-1] == {"n": 2}


UNDECLARED = {
    "a value": (put("plain", Item("tea", 2.5)), r"plain = ef.value_state\(type=Item\);"),
    "inside": (put("plain", {"a": [np.zeros(2)]}), r"plain = ef.value_state\(type=dict\[str, list\[np.ndarray\]\]\);"),
}


@pytest.mark.parametrize(("act", "declaration"), UNDECLARED.values(), ids=UNDECLARED)
def test_undeclared_value_is_refused_with_the_declaration_to_write(act, declaration):
    with pytest.raises(ef.RecordError, match=rf"(?s)can't be saved: `self.plain.*, or declare its type: {declaration}.*key: 'ann'"):
        run(keyed().process(Carts(act)))


def test_undeclared_state_of_stateful_map_is_refused_with_the_declaration_to_write():
    with pytest.raises(ef.RecordError, match=r"or declare its type: stateful_map\(carts, state=Cart\);"):
        run(keyed().stateful_map(carts))


class Complex(ef.KeyedFunction):
    number = ef.value_state(type=list[complex])

    def on_row(self, key, row, context):
        return ()


class WrongKeys(Complex):
    number = ef.map_state(keys=bytearray, type=int)


class WrongDefault(Complex):
    number = ef.value_state("5", type=int)


class CoComplex(ef.CoKeyedFunction):
    number = ef.value_state(type=complex)

    def on_left(self, key, row, context):
        return ()

    on_right = on_left


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (
            lambda: keyed().process(Complex()),
            r"process\(Complex\(\)\): the state `number`: type=list\[complex\] is not supported .*; use",
        ),
        (
            lambda: keyed().process(WrongKeys()),
            r"the state `number`: keys=bytearray, type=int is not supported \(bytearray can't",
        ),
        (lambda: keyed().process(WrongDefault()), r"the default of the state `number`: expected int, got '5'"),
        (lambda: (one := keyed()).co_process(one, CoComplex()), r"co_process\(CoComplex\(\)\): the state `number`: type=complex is not"),
        (lambda: keyed().stateful_map(carts, state=complex), r"stateful_map: state=complex is not supported"),
    ],
)
def test_annotation_that_is_not_supported_is_refused_when_the_flow_is_written(write, problem):
    with pytest.raises(ef.FlowError, match=problem):
        write()


def flow_of(function, state, go):
    """Return a flow that waits after the rows until `go` is set, with the states that it emits at the end."""
    found: list[Any] = []

    def rows(_partition: int, position: Any) -> Any:
        if position is None:
            yield ROWS, 1
        while not go.is_set():
            yield None
        if position != 2:
            yield ROWS, 2

    read = ef.Dataflow("shop").read(ef.from_generator(rows, poll_every="10ms")).key_by("user")
    stream = read.process(function) if state is None else read.stateful_map(function, state=state)
    stream.named("carts").write(ef.to_list(found))
    return stream.flow, found


def stopped(function, state, folder):
    """Stop a job that has read all rows; return its savepoint, and what `job.read` returned."""
    flow, _ = flow_of(function, state, threading.Event())
    job = flow.run(runtime="local", config=ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder / "ck"), interval=None)))
    until(lambda: sum(each.rows_in for each in job.metrics() if each.operator == "carts") == len(ROWS))
    read, saved = job.read("carts", "ann"), job.savepoint(folder / "saved")
    job.cancel()
    job.wait("30s")
    return saved, read


def continued(function, state, savepoint, **allowed):
    go = threading.Event()
    go.set()
    flow, found = flow_of(function, state, go)
    flow.run(runtime="local", parallelism=2, from_savepoint=savepoint, **allowed).wait("60s")
    return found


@pytest.mark.slow
def test_states_are_restored_from_a_savepoint_and_read_as_plain_values(tmp_path):
    saved, read = stopped(Carts(), None, tmp_path)
    tea = {"name": "tea", "price": 2.5}
    assert read["cart"]["items"] == read["items"] == [tea]
    assert read["cart"]["totals"].tolist() == [2.5, 2.5]
    assert (read["newest"], read["names"]) == (tea, {"tea": tea})
    described = ef.read_savepoint(saved).operators["carts"].state
    assert described["cart.items[].price"] == "float"
    assert "'name': 'tea'" in str(ef.read_savepoint(saved).state("carts")["state"].to_pylist())
    assert [row["n"] for row in continued(Carts(), None, saved)] == [2, 2]


def changed(**fields):
    """Return a class like `Bag` with other fields: its type, or its type and default."""
    given = [(name, each) if isinstance(each, type) else (name, each[0], field(default=each[1])) for name, each in fields.items()]
    return make_dataclass("Bag", sorted(given, key=len))


def bag(kind, **more):
    def fill(state, row):
        return state or kind(**{"n": 5, "name": "x", **more}), {"state": None if state is None else asdict(state)}

    return fill


Bag = changed(n=int, name=str)


@pytest.fixture(scope="module")
def saved_bag(tmp_path_factory):
    return stopped(bag(Bag), Bag, tmp_path_factory.mktemp("bag"))[0]


def test_new_field_takes_its_default(saved_bag):
    kind = changed(n=int, name=str, more=(int, 7))
    assert [row["state"] for row in continued(bag(kind), kind, saved_bag)] == [{"n": 5, "name": "x", "more": 7}] * 2


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (changed(n=int, name=str, more=int), r"state `state.more` \(int\) is new, and has no default for the states that were saved"),
        (changed(n=int), r"state `state.name` \(str\) is saved, and the flow has it no longer: say allow_lost_state=True"),
        (changed(n=float, name=str), r"state `state.n` was int and is float"),
        (int, r"the saved state is of declared type object, the operator's of declared type int"),
        (None, r"the saved state is of declared type object, the operator's of declared type none"),
    ],
)
def test_changed_class_is_refused_at_the_start_with_both_sides(kind, problem, saved_bag):
    with pytest.raises(ef.FlowError, match=f"operator `carts`: .*{problem}"):
        continued(bag(kind, more=1), kind, saved_bag) if kind is not None else continued_without_type(saved_bag)


def continued_without_type(saved):
    flow = keyed().stateful_map(carts).named("carts").write(ef.to_list([])).flow
    flow.run(runtime="local", from_savepoint=saved, allow_lost_state=True).wait("60s")


def test_removed_field_is_discarded_if_that_is_allowed(saved_bag):
    kind = changed(n=int)
    assert [row["state"] for row in continued(bag(kind), kind, saved_bag, allow_lost_state=True)] == [{"n": 5}] * 2


def test_arrays_and_scalars_of_arrow_are_printed_as_json(monkeypatch, capsys):
    value = {"array": np.ones((1, 2)), "scalar": pa.scalar(5), "item": {"name": "tea"}}
    monkeypatch.setattr(ef, "connect", lambda name: SimpleNamespace(read=lambda *wanted, timeout: value))
    assert main(["read", "shop", "carts", "ann"]) == 0
    assert json.loads(capsys.readouterr().out) == {"array": [[1.0, 1.0]], "scalar": 5, "item": {"name": "tea"}}
