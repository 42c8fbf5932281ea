"""Edits of one program, and the exact verdict about each: the operators that aren't unchanged."""

from __future__ import annotations

import sys

import pytest
from programs import PRICES, PROGRAM, edited, plan_of

from evenflow.engine.plan.upgrade.comparison import compare

FIRST, TOTALS, MINUTES = "read_parquet", "totals", "minutes"


@pytest.fixture(autouse=True)
def _without_the_programs_module():
    yield
    sys.modules.pop("prices", None)


def upgrade(*edits, prices=PRICES, **options):
    return compare(plan_of(), plan_of(edited(PROGRAM, *edits), prices), **options)


def verdicts(found):
    return {change.operator: str(change.verdict) for change in found.operators if change.verdict != "unchanged"}


SAME = [
    pytest.param([], id="nothing"),
    pytest.param([("# cents in euros", "# another comment\n\n    # in two lines")], id="a comment"),
    pytest.param([("RATE = 2", "\n\n\nRATE = 2")], id="moved lines"),
    pytest.param([('{"eur", "usd", "gbp", "chf"}', '{"chf", "gbp", "usd", "eur"}')], id="the order of a set"),
    pytest.param([('{"low": 1, "high": 9}', '{"high": 9, "low": 1}')], id="the order of a dict"),
    pytest.param([("RATE = 2", "RATE = 1 + 1")], id="a constant in other words"),
    pytest.param([("RATE = 2", "RATE = 2\nUNUSED = 3")], id="an unused constant"),
    pytest.param([("def adding(fee):", "def unused(row):\n    return 1\n\ndef adding(fee):")], id="an unused function"),
    pytest.param([("import numpy as np", "import math\nimport numpy as np")], id="an unused import"),
    pytest.param([('"high": 9', '"high": 10')], id="a value that was read when the program was built only"),
    pytest.param([('"cents": row["cents"] + 1}', '"cents": (row["cents"] + 1)}')], id="parentheses"),
    pytest.param([('"/data/orders"', '("/data/orders")')], id="a path in other words"),
    pytest.param([("n=ef.count(), cents=ef.sum", "cents=ef.sum"), ('"cents"))', '"cents"), n=ef.count())')], id="the order of aggregates"),
]


@pytest.mark.parametrize("edits", SAME)
def test_edit_without_effect_leaves_all_operators_unchanged(edits):
    found = upgrade(*edits)
    assert (verdicts(found), found.changed_stages, found.needs_restart) == ({}, (), False)


CODE = [
    pytest.param([('row["cents"] + 1}', 'row["cents"] + 2}')], "plus", id="a lambda's constant"),
    pytest.param([("cents = row", "amount = row"), ('"cents": cents,', '"cents": amount,')], "price", id="a renamed variable"),
    pytest.param([("RATE = 2", "RATE = 3")], "price", id="a global that it refers to"),
    pytest.param([('"chf"}', '"sek"}')], "known", id="an element of a set that it refers to"),
    pytest.param([('"low": 1', '"low": 2')], "known", id="a changed default"),
    pytest.param([("adding(5)", "adding(6)")], "fee", id="a closure"),
    pytest.param([('row["cents"] + fee', 'row["cents"] - fee')], "fee", id="an inner function"),
    pytest.param([("* factor", "* -factor")], "scaled", id="the function of a partial"),
    pytest.param([("np.arange(5)", "np.arange(1, 6)")], "scaled", id="an array"),
    pytest.param([("self.to * self.to", "self.to * self.to + 1")], "rounded", id="a method of a callable object"),
    pytest.param([("self.percent // 100", "self.percent // 1000")], "discount", id="a method of an object that it refers to"),
    pytest.param([("percent: int = 10", "percent: int = 11")], "discount", id="a default of a dataclass"),
    pytest.param([("DISCOUNT = Discount()", "DISCOUNT = Discount(12)")], "discount", id="an object that it refers to"),
    pytest.param([('ef.col("cents") > 7', 'ef.col("cents") > 8')], "large", id="the constant of an expression"),
    pytest.param([('ef.col("cents") > 7', 'ef.col("cents") >= 7')], "large", id="the comparison of an expression"),
    pytest.param([('ef.col("cents") > 7', 'lambda row: row["cents"] > 7')], "large", id="an expression that becomes a function"),
    pytest.param([("slice(0, 100)", "slice(0, 200)")], "cut", id="a function of batches"),
    pytest.param(
        [("rows.map(converted)", 'rows.map(lambda row: {**row, "cents": prices.in_cents(row["cents"])})')], "converted", id="a lambda"
    ),
]


@pytest.mark.parametrize(("edits", "operator"), CODE)
def test_changed_code_is_live_and_named(edits, operator):
    found = upgrade(*edits)
    assert (verdicts(found), found.changed_stages, found.needs_restart) == ({operator: "code"}, (FIRST,), False)
    assert found.can_go_back(FIRST)


MODULE = [
    pytest.param([("int(n)", "round(n)")], {"converted": "code"}, id="a helper of the function"),
    pytest.param([("FACTOR = 100", "FACTOR = 1000")], {"converted": "code"}, id="a constant of its module"),
    pytest.param([("whole(n) * FACTOR", "FACTOR * whole(n)")], {"converted": "code"}, id="the function"),
    pytest.param([("return n + 1", "return n + 2")], {}, id="a function that it doesn't use"),
    pytest.param([("FACTOR = 100", "# cents\n\n\nFACTOR = 100")], {}, id="moved lines"),
]


@pytest.mark.parametrize(("edits", "expected"), MODULE)
def test_edit_of_an_imported_module_counts_where_it_is_used(edits, expected):
    assert verdicts(upgrade(prices=edited(PRICES, *edits))) == expected


SETTINGS = [
    pytest.param([("Rounding(10)", "Rounding(20)")], "rounded", FIRST, id="the attribute of a callable object"),
    pytest.param([("factor=3", "factor=4")], "scaled", FIRST, id="the argument of a partial"),
    pytest.param([("rows.map(adding(5))", 'rows.map(adding(5), on_error="skip")')], "fee", FIRST, id="the policy for errors"),
    pytest.param([('poll_every="1s"', 'poll_every="5s"')], "read_parquet", FIRST, id="how often a folder is listed"),
    pytest.param([("roll_bytes=1000", "roll_bytes=2000")], "write_totals", TOTALS, id="the size of files"),
    pytest.param([('"/out/minutes"', '"/out/minutes", compression="gzip"')], "write_minutes", MINUTES, id="the compression of files"),
    pytest.param([('"/out/minutes"', '"/out/minutes", rows_per_group=5')], "write_minutes", MINUTES, id="the rows of a group"),
    pytest.param([('"/out/totals"', '"/out/totals", append=True')], "write_totals", TOTALS, id="an option for the start"),
]


@pytest.mark.parametrize(("edits", "operator", "stage"), SETTINGS)
def test_changed_settings_that_do_no_harm_are_live(edits, operator, stage):
    found = upgrade(*edits)
    assert (verdicts(found), found.changed_stages, found.needs_restart) == ({operator: "settings"}, (stage,), False)


def test_code_of_a_keyed_function_with_the_same_state_is_live():
    found = upgrade(('+ row["cents"]\n', '+ 2 * row["cents"]\n'))
    assert (verdicts(found), found.changed_stages) == ({"totals": "code"}, (TOTALS,))
    assert found.can_go_back(TOTALS)


RESTART = [
    pytest.param(
        [("type=int", "type=float")], {"totals"}, "state `total` was value of int and is value of float", id="the type of a state"
    ),
    pytest.param([("total = ef", "other = ef.list_state()\n    total = ef")], {"totals"}, "state `other` (list) is new", id="a new state"),
    pytest.param([('tumbling("1m")', 'tumbling("2m")')], {"minutes"}, "of windows tumbling 60 s", id="another window"),
    pytest.param([('tumbling("1m")', 'sliding("2m", "1m")')], {"minutes"}, "of windows tumbling 60 s", id="another kind of window"),
    pytest.param([('tumbling("1m")', 'session("1m")')], {"minutes"}, "it was a AggregateWindows and is a AggregateSessions", id="sessions"),
    pytest.param([('ef.sum("cents")', 'ef.max("cents")')], {"minutes"}, 'aggregate `cents` was sum("cents") and is max("cents")', id="max"),
    pytest.param([("n=ef.count(), ", "")], {"minutes"}, "aggregate `n` (count()) is gone", id="an aggregate less"),
    pytest.param([("n=ef.count(), ", 'n=ef.count(), top=ef.max("cents"), ')], {"minutes"}, '`top` (max("cents")) is new', id="one more"),
    pytest.param([('rows.key_by("currency")', 'rows.key_by("user")')], {"minutes"}, "by currency and is by user", id="another key"),
    pytest.param([('"/data/orders"', '"/data/sales"')], {"read_parquet"}, "`paths` changed", id="another folder to read"),
    pytest.param([('event_time="at"', 'event_time="paid_at"')], {"read_parquet"}, "`event_time` changed", id="another time"),
    pytest.param([("follow=True, ", "follow=False, ")], {"read_parquet"}, "`follow` changed", id="files are no longer followed"),
    pytest.param(
        [("ef.read_parquet(", "ef.read_csv("), ("poll_every", "name='read_parquet', poll_every")],
        {"read_parquet"},
        "it was a ParquetSource",
        id="csv",
    ),
    pytest.param([('"/out/minutes"', '"/out/hours"')], {"write_minutes"}, "`path` changed", id="another folder to write"),
    pytest.param(
        [('"/out/minutes"', '"/out/minutes", partition_by="currency"')], {"write_minutes"}, "`partition_by` changed", id="partitions"
    ),
    pytest.param([("ef.write_json(", "ef.write_csv(")], {"write_totals"}, "it was a JsonSink and is a CsvSink", id="another format"),
    pytest.param([('.filter(is_known).named("known")', "")], {"known"}, "it is gone", id="an operator less"),
    pytest.param(
        [('.filter(is_known).named("known")', '.filter(is_known).named("known").filter(is_known)')], {"filter"}, "it is new", id="one more"
    ),
    pytest.param([('.named("known")', '.named("valid")')], {"known", "valid"}, "it is new", id="a renamed operator"),
    pytest.param(
        [('.filter(is_known).named("known")', '.map(is_known).named("known")')], {"known"}, "it was a Filter and is a Map", id="a map"
    ),
    pytest.param(
        [('.map(price).named("price").filter(is_known).named("known")', '.filter(is_known).named("known").map(price).named("price")')],
        {"known", "price"},
        "it is in the place of `known`",
        id="two operators in another order",
    ),
    pytest.param(
        [('named("cut")\n', 'named("cut").parallelism(3)\n')], {"cut"}, "it ran in the workers of `read_parquet`", id="another stage"
    ),
]


@pytest.mark.parametrize(("edits", "operators", "why"), RESTART)
def test_change_of_state_layout_or_place_needs_a_restart(edits, operators, why):
    found = upgrade(*edits)
    assert found.needs_restart
    restarted = {change.operator: change.why for change in found.operators if change.verdict == "restart"}
    assert operators <= restarted.keys()
    assert any(why in text for text in restarted.values()), restarted


def test_number_of_workers_is_not_compared():
    found = compare(plan_of(parallelism=1), plan_of(parallelism=4))
    assert (verdicts(found), found.changed_stages) == ({}, ())


def test_other_number_of_key_groups_needs_a_restart():
    import evenflow as ef

    found = compare(plan_of(), plan_of(config=ef.JobConfig(key_groups=64)))
    assert verdicts(found) == {"totals": "restart", "minutes": "restart"}
    assert "it had 1024 key groups and has 64" in found.table()


def test_all_operators_can_be_taken_as_changed():
    found = upgrade(all_changed=True)
    assert set(verdicts(found).values()) == {"code"}
    assert {change.operator for change in found.operators if change.verdict == "unchanged"} == {FIRST, "write_totals", "write_minutes"}
    assert found.changed_stages == (FIRST, TOTALS, MINUTES)
    assert not found.needs_restart


ANOTHER_ORDER = [("n=ef.count(), cents=ef.sum", "cents=ef.sum"), ('"cents"))', '"cents"), n=ef.count())')]


@pytest.mark.parametrize(
    ("edits", "options"),
    [
        pytest.param(ANOTHER_ORDER, {"all_changed": True}, id="all taken as changed"),
        pytest.param([*ANOTHER_ORDER, ("n=ef.count())", 'n=ef.count(), emit="update")')], {}, id="with a changed setting"),
    ],
)
def test_state_whose_parts_are_in_another_order_is_not_handed_to_new_code(edits, options):
    found = upgrade(*edits, **options)
    assert verdicts(found)["minutes"] == "restart"
    assert "its parts were n, cents, and are cents, n" in found.table()


def test_stages_are_in_the_order_of_the_flow():
    found = upgrade(("adding(5)", "adding(6)"), ("roll_bytes=1000", "roll_bytes=2000"), ('+ row["cents"]\n', '+ 3 * row["cents"]\n'))
    assert verdicts(found) == {"fee": "code", "totals": "code", "write_totals": "settings"}
    assert found.changed_stages == (FIRST, TOTALS)


def test_lock_that_a_function_refers_to_is_taken_as_changed_with_the_reason():
    text = edited(PROGRAM, ("RATE = 2", "RATE = 2\nLOCK = threading.Lock()"), ("# cents in euros", "with LOCK: pass"))
    found = compare(plan_of(text), plan_of(text))
    assert verdicts(found) == {"price": "code"}
    (why,) = [change.why for change in found.operators if change.operator == "price"]
    assert why == "`function` is taken as changed: it has a lock, which can't be compared (cannot pickle '_thread.lock' object)"


def test_table_names_each_operator_its_stage_the_verdict_and_the_reason():
    lines = upgrade(("adding(5)", "adding(6)")).table().splitlines()
    assert lines[0].split() == ["operator", "stage", "verdict", "why"]
    assert [line.split(maxsplit=3) for line in lines if line.startswith("fee")] == [["fee", "read_parquet", "code", "`function` changed"]]
    assert lines[-1] == "A live upgrade replaces the workers of read_parquet."
    assert upgrade().table().splitlines()[-1] == "Nothing changed."
    assert "stop the job with a savepoint" in upgrade(('tumbling("1m")', 'tumbling("2m")')).table().splitlines()[-1]
