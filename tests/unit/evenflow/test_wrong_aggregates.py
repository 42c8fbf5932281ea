"""Aggregates, their conditions and exploded lists that are written wrongly, or meet columns they can't use."""

from __future__ import annotations

import pytest

import evenflow as ef

WRONG = {
    "a condition that is no condition": (lambda: ef.count(where=5), "where=5: expected an expression, for example ef.col"),
    "a condition that is a function": (lambda: ef.sum("x", where=lambda row: True), "expected an expression"),
    "a condition that is True": (lambda: ef.max("x", where=True), "where=True: expected an expression"),
    "a column of count_distinct": (
        lambda: ef.count_distinct(3),
        'count_distinct takes the name of a column, as in count_distinct("delay")',
    ),
    "a column of median": (lambda: ef.median(None), "median takes the name of a column"),
    "no quantile": (lambda: ef.quantile("x", 1.5), "quantile: `q` must be a number from 0 to 1, got 1.5"),
    "a quantile of text": (lambda: ef.quantile("x", "half"), "quantile: `q` must be a number from 0 to 1, got 'half'"),
    "by of max_by": (lambda: ef.max_by("x", 3), "max_by takes the name of a column"),
    "no rows of a top": (lambda: ef.top(0, by="x"), "top(0, ...): the number of rows must be a whole number of at least 1"),
    "half a row of a top": (lambda: ef.top(1.5, by="x"), "top(1.5, ...): the number of rows"),
    "True rows of a top": (lambda: ef.top(True, by="x"), "top(True, ...): the number of rows"),
    "a top by nothing": (lambda: ef.top(1, by=[]), "top(by=[]): expected a column, or columns with an order each"),
    "a top by names": (lambda: ef.top(1, by=["price", "ts"]), "expected a column, or columns with an order each"),
    "a top upwards": (lambda: ef.top(1, by=[("price", "up")]), '[("price", "descending"), ("ts", "ascending")]'),
    "a top by a column twice": (lambda: ef.top(1, by=[("x", "ascending"), ("x", "descending")]), "expected a column, or columns"),
    "ties that are no truth": (lambda: ef.top(1, by="x", ties="all"), "top(ties='all'): expected True or False"),
    "columns that are a name": (lambda: ef.top(1, by="x", columns="x"), "top(columns='x'): expected a list of the names of columns"),
    "no columns of a top": (lambda: ef.top(1, by="x", columns=[]), "top(columns=[]): expected a list"),
    "another emission": (lambda: hourly(emit="often"), 'aggregate(emit=\'often\'): expected "final" or "update"'),
    "every without updates": (lambda: hourly(every="1m"), "aggregate(every='1m'): results that are emitted once have no `every`"),
    "every of nothing": (lambda: hourly(emit="update", every=0), "aggregate(every=0): it must be longer than zero"),
    "every now and then": (lambda: hourly(emit="update", every="soon"), "aggregate: every 'soon' is not a duration"),
    "lateness of text": (lambda: hourly(lateness="some"), "aggregate: lateness 'some' is not a duration"),
    "lateness before the end": (lambda: hourly(lateness=-1), "aggregate: lateness -1 is not a duration"),
    "sessions with updates": (
        lambda: rows().key_by("k").window(ef.session("1m")).aggregate(emit="update", n=ef.count()),
        "windows can't be emitted more than once",
    ),
    "sessions with corrections": (
        lambda: rows().key_by("k").window(ef.session("1m")).aggregate(lateness="1m", n=ef.count()),
        "aggregate(late records for 60 s): ",
    ),
    "a list to explode": (lambda: rows().explode(["a", "b"]), "explode(['a', 'b']): give the name of a column of lists"),
    "a number for a position": (lambda: rows().explode("a", position=1), "explode(position=1): expected the name of a new column"),
}


def hourly(**options):
    return rows().key_by("k").window(ef.tumbling("1h")).aggregate(**options, n=ef.count())


ROWS = [{"k": "a", "v": 1, "l": [1, 2], "s": {"x": 1}, "t": 0}, {"k": "b", "v": 2, "l": [], "s": None, "t": 1}]


def rows():
    return ef.Dataflow("wrong").read(ef.from_items(ROWS, event_time="t"))


def of(**aggregates):
    return lambda s: s.key_by("k").aggregate(**aggregates)


FAILING = {
    "a column that isn't there": (of(n=ef.sum("v", where="w")), "`aggregate`", "where='w': there is no column `w`; there are: k"),
    "a column that is no truth": (of(n=ef.sum("v", where="v")), "`aggregate`", "where='v': the column is of type int64, expected booleans"),
    "the median of text": (of(n=ef.median("k")), "median(`k`)", "string", "integers, floats and decimals"),
    "the variance of text": (of(n=ef.variance("k")), "variance(`k`)", "integers, floats and decimals"),
    "the variance of a column that isn't there": (of(n=ef.stddev("w")), "stddev(`w`): there is no column `w`"),
    "distinct lists": (of(n=ef.count_distinct("l")), "count_distinct(`l`)", "columns that are not nested"),
    "a collection of lists": (of(n=ef.collect("l")), "collect(`l`)", "columns that have an order"),
    "a top of rows with lists": (of(n=ef.top(1, by="v")), "top(`l`)", "to decide between equal rows", "not on nested ones"),
    "a top by a column that isn't there": (of(n=ef.top(1, by="w", columns=["v"])), "top(`w`): there is no column `w`"),
    "a maximum by a list": (of(n=ef.max_by("v", "l")), "max_by(`l`)", "columns that have an order"),
    "a column to explode that isn't there": (lambda s: s.explode("w"), "`explode`", "no column `w`; there are: k, v, l, s, t"),
    "a number to explode": (lambda s: s.explode("v"), "explode(`v`): the column is of type int64, expected lists"),
    "a position that is a column": (lambda s: s.explode("l", position="k"), "explode(`l`): two columns would have the name `k`"),
    "a struct's field that is a column": (
        lambda s: of(l=ef.collect("v"), v=ef.count(), top=ef.top(1, by="v", columns=["v"]))(s).explode("top"),
        "explode(`top`): two columns would have the name `v`", "rename or drop one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_argument_is_refused_with_what_was_expected(refused, name):
    program, said = WRONG[name]
    error = refused(program)
    assert isinstance(error, ef.FlowError)
    assert said in str(error)


@pytest.mark.parametrize("name", FAILING)
def test_column_that_cannot_be_used_ends_the_job_with_its_name(ended, name):
    build, *said = FAILING[name]
    error = str(ended(build, ROWS, event_time="t"))
    for part in said:
        assert part in error, error
