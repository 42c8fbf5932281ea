"""Windows that are written wrongly: refused before any row is read, with what to do; and how plans show windows of all kinds."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.testing import simulate


def rows(event_time="t", flow=None):
    return (flow or ef.Dataflow("wrong")).read(ef.from_items([{"k": "a", "t": 1, "v": 1}], event_time=event_time))


def explained(build, event_time=None, **options):
    flow = ef.Dataflow("windows")
    build(rows(event_time, flow)).write(ef.to_list([]))
    return flow.explain(**options)


def tell(key, window, found):
    return [{"n": len(found)}]


WRONG = {
    # Sessions
    "a session without a gap": (lambda: ef.session(0), "session gap 0 must be longer than zero: rows of one session are at most that far"),
    "a session of a short word": (lambda: ef.session("10 seconds"), "session gap '10 seconds' is not a duration: write \"500ms\""),
    "a session of less than nothing": (lambda: ef.session(-1), "session gap -1 is not a duration"),
    "updates of sessions": (
        lambda: rows().key_by("k").window(ef.session("1s")).aggregate(emit="update", n=ef.count()), "sessions, 1 s apart windows can't be",
    ),
    # Count windows
    "windows of no rows": (lambda: ef.rows(0), "rows(size=0): expected a whole number of rows, at least 1"),
    "windows of half a row": (lambda: ef.rows(0.5), "rows(size=0.5): expected a whole number"),
    "windows of True": (lambda: ef.rows(True), "rows(size=True): expected a whole number"),
    "windows every 0 rows": (lambda: ef.rows(3, every=0), "rows(every=0): expected a whole number"),
    "windows of rows with gaps": (lambda: ef.rows(3, every=5), "rows(3, every=5) would leave gaps between the windows: make them at least"),
    "windows that share a row": (lambda: ef.rows(1_000_000, every=999_999), "would have 1,000,000 panes of 1 rows in a window"),
    "late rows of count windows": (
        lambda: rows().key_by("k").window(ef.rows(3)).aggregate(n=ef.count()).late, "operator `aggregate` has no late records: its windows",
    ),
    "a function of count windows": (
        lambda: rows().key_by("k").window(ef.rows(3)).process(tell), "process takes whole windows of event time: ef.rows has none",
    ),
    "an aggregate named as a count window's end": (
        lambda: rows().key_by("k").window(ef.rows(3)).aggregate(window_end_row=ef.count()), "`window_end_row` is a column of the result",
    ),
    # Functions of windows
    "a function of a row": (lambda: rows().window(ef.tumbling(1)).process(lambda row: row), "it takes (row), but is called with (key, wi"),
    "no function": (lambda: rows().window(ef.tumbling(1)).process(None), "process(None): expected a function of (key, window, rows)"),
    "another on_error": (lambda: rows().window(ef.tumbling(1)).process(tell, on_error="drop"), "process(on_error='drop'): expected"),
    # Without keys
    "text for windows without keys": (lambda: rows().window("1h"), ".window('1h'): expected windows, for example ef.tumbling(\"1h\")"),
    # Without event time
    "windows without event time": (
        lambda: explained(lambda stream: stream.key_by("k").window(ef.tumbling("1s")).aggregate(n=ef.count())),
        "operator `aggregate` has windows, but the rows of `from_items` have no event time: say event_time=... where you read it",
    ),
    "sessions without event time": (
        lambda: explained(lambda stream: stream.map(dict).key_by("k").window(ef.session("1s")).aggregate(n=ef.count()).named("visits")),
        "operator `visits` has windows, but the rows of `from_items` have no event time",
    ),
    "functions of windows without event time": (
        lambda: explained(lambda stream: stream.union(stream).filter(bool).window(ef.tumbling("1s")).process(tell)),
        "operator `process` has windows, but the rows of `from_items` have no event time",
    ),
    "a join by time without event time": (
        lambda: explained(lambda stream: stream.key_by("k").join(stream.key_by("k"), ef.between(0, "1s"))),
        "operator `join` joins by time, but the rows of `from_items` have no event time",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "says"), WRONG.values(), ids=WRONG)
def test_wrong_windows_are_refused_before_anything_runs(wrong, says):
    with pytest.raises(ef.FlowError) as refused:
        wrong()
    assert says in str(refused.value)


def test_windows_that_need_no_event_time_are_planned_without():
    assert "aggregate" in explained(lambda stream: stream.key_by("k").window(ef.rows(3)).aggregate(n=ef.count()))
    assert "join" in explained(lambda stream: stream.key_by("k").join(stream.key_by("k"), ef.always()))


def test_time_that_is_assigned_behind_the_source_is_enough_for_windows():
    assert "with_time" in explained(lambda stream: stream.with_time("t").window(ef.tumbling("1s")).aggregate(n=ef.count()))


def test_plan_names_the_kind_of_windows():
    for windows, words in (
        (ef.session("10s"), "n by k in sessions, 10 s apart"),
        (ef.rows(10_000, every=1_000), "n by k in windows of 10,000 rows every 1,000"),
        (ef.rows(500), "n by k in windows of 500 rows"),
    ):
        assert words in explained(lambda stream, windows=windows: stream.key_by("k").window(windows).aggregate(n=ef.count()), "t")
    assert "tell by k, sessions, 5 s apart" in explained(lambda stream: stream.key_by("k").window(ef.session(5)).process(tell), "t")


def test_windows_without_keys_are_combined_in_parallel_and_computed_by_one_worker():
    plan = explained(lambda stream: stream.window(ef.tumbling("1s")).aggregate(n=ef.count()), "t", parallelism=3)
    assert "n over all rows in tumbling 1 s windows" in plan
    assert "from_items x 3: from_items -> aggregate.combine" in plan
    assert "to aggregate as one group, 3 x 1 workers" in plan
    assert "__all" not in plan


def test_operators_behind_windows_without_keys_run_in_their_worker_by_default():
    def best(stream):
        return stream.window(ef.tumbling("1s")).aggregate(best=ef.top(2, by="t")).explode("best")

    assert "aggregate x 1: aggregate -> explode -> to_list" in explained(best, "t", parallelism=3)
    assert "explode x 2: explode" in explained(lambda stream: best(stream).parallelism(2), "t", parallelism=3)
    assert "explode x 3: explode" in explained(lambda stream: best(stream).parallelism(between=(2, 4)), "t", parallelism=3)


def test_windows_without_keys_may_have_more_workers_but_no_more_results():
    flow = ef.Dataflow("wide")
    rows = flow.read(ef.from_items([{"t": time} for time in range(10)], event_time="t", unit="s"))
    rows.window(ef.tumbling("5s")).aggregate(n=ef.count()).parallelism(3).write(ef.to_list([]))
    out = simulate(flow, 1, parallelism=2).rows["to_list"]
    assert [row["n"] for row in out] == [5, 5]
    assert [list(row) for row in out] == [["window_start", "window_end", "n"]] * 2


def test_chart_of_windows_without_keys_shows_no_key():
    flow = ef.Dataflow("chart")
    rows(flow=flow).window(ef.tumbling("1s")).aggregate(n=ef.count()).write(ef.to_list([]))
    assert "n0 --> n1" in flow.to_mermaid()
