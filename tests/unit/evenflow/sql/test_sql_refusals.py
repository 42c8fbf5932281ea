"""Queries that are refused, each with an error that shows the part and says what to write instead."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.errors import FlowError

TIMES = "TABLE t, DESCRIPTOR(ts)"

SOON = "u.ts BETWEEN t.ts AND t.ts + INTERVAL '1' HOUR"

HOURS = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)"

REFUSED = {
    "SELECT": "a query needs FROM",
    "SELECT 1": "a query needs FROM",
    "": "expected a text",
    "SELECT v FRO t": "Invalid expression",
    "SELECT v FROM nope": "no stream or table `nope`; there are: t, u, tab",
    "SELECT nope FROM t": "'nope' could not be resolved.*t has k, v",
    "SELECT k FROM t, u": "'k' could not be resolved",
    "SELECT v FROM t ORDER BY v": "ORDER isn't supported here",
    "SELECT v FROM t LIMIT 5": "LIMIT isn't supported here",
    "SELECT v FROM t OFFSET 5": "OFFSET isn't supported here",
    "SELECT v FROM t FETCH FIRST 5 ROWS ONLY": "LIMIT isn't supported here",
    "SELECT v FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) = 1": "QUALIFY isn't supported here",
    "SELECT v FROM t TABLESAMPLE (10 PERCENT)": "SAMPLE isn't supported here",
    "SELECT v FROM t PIVOT (SUM(v) FOR k IN ('a'))": "PIVOTS isn't supported here",
    "SELECT v FROM t CLUSTER BY v": "CLUSTER isn't supported here",
    "SELECT v FROM t SORT BY v": "SORT isn't supported here",
    "SELECT /*+ BROADCAST(t) */ v FROM t": "HINT isn't supported here",
    "SELECT v FROM t FOR UPDATE": "LOCKS isn't supported here",
    "SELECT v FROM t AS a(b)": "COLUMNS isn't supported here",
    "SELECT v FROM t FOR SYSTEM_TIME AS OF ts": "VERSION isn't supported here",
    "SELECT v AS a, s AS a FROM t": "two columns would have the name `a`: say AS another name",
    "SELECT k, COUNT(*) AS k FROM t GROUP BY k": "two columns would have the name `k`",
    "SELECT k, SUM(v) FROM t GROUP BY k WITH ROLLUP": "ROLLUP isn't supported",
    "SELECT k, SUM(v) FROM t GROUP BY ROLLUP(k)": "ROLLUP isn't supported",
    "SELECT k, SUM(v) FROM t GROUP BY CUBE(k)": "CUBE isn't supported",
    "SELECT k, SUM(v) FROM t GROUP BY GROUPING SETS ((k), ())": "GROUPINGSETS isn't supported",
    "SELECT COUNT(*) FROM t GROUP BY ALL": "ALL isn't supported here",
    "SELECT v FROM t GROUP BY k": "t.v: it is neither in GROUP BY nor in an aggregate",
    "SELECT v FROM t WHERE SUM(v) > 5": "an aggregate can't stand here",
    "SELECT SUM(s) FROM t": "it is over numbers, and t.s is string",
    "SELECT STDDEV(b) FROM t": "it is over numbers, and t.b is bool",
    "SELECT SUM(DISTINCT v) FROM t": r"DISTINCT is supported in COUNT\(DISTINCT column\)",
    "SELECT COUNT(DISTINCT k, v) FROM t": r"DISTINCT is supported in COUNT\(DISTINCT column\)",
    "SELECT FIRST_VALUE(v) FROM t": "the aggregate isn't supported; there are: COUNT, SUM, AVG",
    "SELECT ANY_VALUE(v) FROM t": "the aggregate isn't supported",
    "SELECT STRING_AGG(s, ',') FROM t": "SEPARATOR isn't supported here",
    "SELECT GROUPING(k) FROM t GROUP BY k": "isn't supported here",
    "SELECT SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM t": "of functions OVER rows only",
    "SELECT COUNT(*) FILTER (WHERE v > 1) OVER (PARTITION BY k) FROM t": "of functions OVER rows only",
    "SELECT RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM t": "of functions OVER rows only",
    "SELECT LAG(v) OVER (PARTITION BY k ORDER BY ts) FROM t": "of functions OVER rows only",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t)": "a rank can only be bounded: WHERE rank <= n",
    "SELECT v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t": "bound the rank in the query around it.*WHERE r <= 3",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t) WHERE r = 2": "a rank can only be bounded",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t) WHERE r > 2": "a rank can only be bounded",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM t) WHERE r < 1": "no row has such a rank",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k) AS r FROM t) WHERE r <= 2": "needs ORDER BY",
    "SELECT t.v FROM t JOIN u ON t.v > u.w": "a column of one side equals a column of the other",
    "SELECT t.v FROM t CROSS JOIN u": "a column of one side equals a column of the other",
    "SELECT t.v FROM t JOIN u ON t.k = u.k": 'keeps its rows for ever: bound it, or say .*ttl="1d"',
    "SELECT t.v FROM t JOIN u USING (k)": "keeps its rows for ever",
    "SELECT DISTINCT k FROM t": "SELECT DISTINCT keeps its rows for ever",
    "SELECT t.v FROM t LEFT SEMI JOIN u ON t.k = u.k": "LEFT SEMI JOIN isn't supported; there are INNER, LEFT, RIGHT and FULL",
    f"SELECT t.v FROM t LEFT JOIN u ON t.k = u.k AND t.v > 1 AND {SOON}": "an outer join takes equal columns and bounds",
    "SELECT t.v FROM t FULL JOIN u ON t.k = u.k AND u.w > 1 AND u.ts = t.ts": "filter that side in its own query",
    "SELECT t.v FROM t JOIN u ON t.k = u.k AND u.ts BETWEEN t.ts + INTERVAL '2' HOUR AND t.ts + INTERVAL '1' HOUR": "no two times fulfil",
    "SELECT t.v FROM t JOIN (SELECT k, COUNT(*) AS n FROM u GROUP BY k) c ON t.k = c.k": "rows that are updated can't be joined",
    "SELECT t.v, n.name FROM t JOIN tab AS n ON t.v > 3": "a column of the table equals something of the stream",
    "SELECT t.v, n.name FROM t RIGHT JOIN tab AS n ON t.k = n.k": "a table is joined by INNER or LEFT JOIN",
    "SELECT t.v, n.name FROM t LEFT JOIN tab AS n ON t.k = n.k AND t.v > 3": "takes equal columns only",
    "SELECT t.v FROM t JOIN tab FOR SYSTEM_TIME AS OF t.ts AS n ON t.k = n.k": "looked up when a row arrives",
    "SELECT k FROM tab": "can't be read as a stream; join it",
    "SELECT v FROM t WHERE k IN (SELECT k FROM u)": "the join with _in, which has no bound of time, keeps its rows for ever",
    "SELECT v FROM t WHERE k IN (SELECT k, w FROM u)": "more than one column",
    "SELECT v FROM t WHERE k NOT IN (SELECT k FROM u)": "never true if the query has a null; write NOT EXISTS",
    "SELECT v FROM t WHERE k IN (SELECT k FROM u) OR v = 1": "write a JOIN, or IN and EXISTS as a part of WHERE",
    "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)": "keeps its rows for ever",
    "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.w = 1)": "a join needs a condition that a column of one side equals",
    "SELECT v FROM t WHERE EXISTS (SELECT k FROM u WHERE u.k = t.k GROUP BY k)": "EXISTS takes SELECT ... FROM table WHERE",
    (
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.ts BETWEEN t.ts AND t.ts + INTERVAL '1' DAY AND u.w < t.v)"
    ): "takes equal columns and bounds",
    "SELECT t.v FROM t JOIN u FOR SYSTEM_TIME AS OF PROCTIME() AS u ON t.k = u.k": "looked up at the event time of the other",
    "SELECT t.v FROM t RIGHT JOIN u FOR SYSTEM_TIME AS OF t.ts AS u ON t.k = u.k": "is of INNER or LEFT JOIN",
    "SELECT v FROM t WHERE v > (SELECT MAX(w) FROM u)": "a query can't stand here",
    "SELECT v FROM t WHERE k = ANY (SELECT k FROM u)": "ANY isn't supported",
    "SELECT v FROM t UNION SELECT w FROM u": "write UNION ALL, or SELECT DISTINCT around it",
    "SELECT v FROM t INTERSECT SELECT w FROM u": "expected SELECT, or UNION ALL of such",
    "SELECT v FROM t EXCEPT SELECT w FROM u": "expected SELECT, or UNION ALL of such",
    "SELECT k, v FROM t UNION ALL SELECT w FROM u": "column mismatch",
    "SELECT k FROM t UNION ALL SELECT w FROM u": "UNION ALL can't combine string and int64",
    "WITH RECURSIVE r AS (SELECT v FROM t) SELECT v FROM r": "RECURSIVE isn't supported here",
    "WITH r(a) AS (SELECT v FROM t) SELECT a FROM r": "name the columns inside of the query",
    "SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(v), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end":
        "t.v: it is not the event time of these rows",
    "SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MONTH)) GROUP BY k, window_start, window_end":
        "expected an interval of fixed length",
    "SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '0' HOUR)) GROUP BY k, window_start, window_end":
        "expected one interval, longer than zero",
    "SELECT k, COUNT(*) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end":
        "expected two intervals, the slide and the size",
    f"SELECT k, COUNT(*) FROM TABLE(CUMULATE({TIMES}, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end":
        "CUMULATE isn't supported: use TUMBLE",
    "SELECT COUNT(*) FROM TABLE(SESSION(TABLE t PARTITION BY v, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end":
        "sessions are those of each group; use the same columns",
    f"SELECT k, COUNT(*) FROM TABLE({HOURS}) GROUP BY k, window_start": "name both, window_start and window_end",
    f"SELECT k, window_start FROM TABLE({HOURS})": "the bounds of a window exist once its rows are grouped",
    f"SELECT k FROM TABLE({HOURS}) WHERE window_start > ts": "can only be selected and grouped by",
    "SELECT PROCTIME() FROM t": "the time of arrival can only be that of a window",
    "SELECT FOO(v) FROM t": r"the function FOO is unknown; give a Python function of your own in sql\(..., functions=",
    "SELECT v + s FROM t": r"\+ can't combine int64 and string",
    "SELECT v FROM t WHERE v": "v has the type int64, expected booleans",
    "SELECT UPPER(v) FROM t": "works on texts, got int64",
    "SELECT COALESCE(v, s) FROM t": "can't combine int64 and string",
    "SELECT CASE WHEN v THEN 1 END FROM t": "works on booleans, got int64",
    "SELECT 'a' || v FROM t": "can't combine string and int64",
    "SELECT CAST(s AS FOO) FROM t": "Expected TYPE after CAST",
    "SELECT CAST(s AS MAP<STRING, INT>) FROM t": "the type is unknown; there are",
    "SELECT TRY_CAST(s AS INT) FROM t": "TRY_CAST isn't supported",
    "SELECT v FROM t WHERE s LIKE k": "the pattern of LIKE must be a constant",
    "SELECT v FROM t WHERE s ILIKE 'a%'": "ILIKE isn't supported",
    "SELECT v FROM t WHERE s SIMILAR TO 'a'": "SIMILARTO isn't supported",
    "SELECT v FROM t WHERE v IS DISTINCT FROM 3": "NULLSAFENEQ isn't supported",
    "SELECT v FROM t WHERE v BETWEEN SYMMETRIC 3 AND 1": "SYMMETRIC isn't supported here",
    "SELECT REPLACE(s, k, 'x') FROM t": "the text to replace must be a constant",
    "SELECT l[0] FROM t": "the place of an element of a list, from 1 on",
    "SELECT l[v] FROM t": "the place of an element of a list, from 1 on",
    "SELECT CURRENT_TIMESTAMP FROM t": "CURRENT_TIMESTAMP isn't supported",
    "SELECT RAND() FROM t": "RAND isn't supported",
    "SELECT EXTRACT(EPOCH FROM ts) FROM t": "the unit is unknown; there are: YEAR",
    "SELECT x FROM t, LATERAL TABLE(f(v))": "expected a table, or a query in parentheses",
    "SELECT e FROM t CROSS JOIN UNNEST(l) AS q(e)": "isn't supported|expected a table",
    "SELECT v FROM t; SELECT v FROM t": "expected one query, got 2 statements",
    "INSERT INTO x SELECT v FROM t": "no stream or table `x`",
    "CREATE TABLE x (a INT)": "no stream or table `x`",
    "DELETE FROM t": "expected SELECT",
    "UPDATE t SET v = 1": "expected SELECT",
}  # fmt: skip


@pytest.mark.parametrize(("query", "problem"), REFUSED.items(), ids=range(len(REFUSED)))
def test_query_is_refused_with_what_to_write_instead(inputs, query, problem):
    with pytest.raises(FlowError, match=problem):
        ef.sql(query, **inputs)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, SUM(v) AS n FROM t GROUP BY k HAVING SUM(v) > 5",
        "SELECT * FROM (SELECT k, SUM(v) AS n FROM t GROUP BY k) WHERE n > 5",
        "SELECT k FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) WHERE k > '1' AND n > 5",
    ],
)
def test_filter_of_updated_rows_is_refused_for_a_reader_that_can_not_take_rows_back(inputs, query):
    stream = ef.sql(query, ttl="never", t=inputs["t"])
    ef.sql("SELECT w FROM u", u=inputs["u"]).write(ef.to_list([], name="others"))
    stream.write(ef.to_list([]))
    with pytest.raises(FlowError, match="may have to be taken back, and the reader of these rows takes none back: write"):
        stream.flow.plan()


def test_a_hundred_queries_are_refused():
    assert len(REFUSED) >= 100


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda t: ef.sql("SELECT 1 AS a FROM t"), "give at least one stream by its name"),
        (lambda t: ef.sql(5, t=t), "expected a text"),
        (lambda t: ef.sql("SELECT v FROM t", t=5), r"sql\(t=5\): expected a stream, an Arrow table or a frame"),
        (lambda t: ef.sql("SELECT v FROM t", t=t.map(dict)), r"sql\(t=...\): the columns of the stream aren't known"),
        (lambda t: ef.sql("SELECT DISTINCT v FROM t", t=t, ttl="soon"), "ttl.*'soon' is not a duration"),
        (lambda t: ef.sql("SELECT v FROM t", t=t, u=ef.Dataflow("g").read(ef.from_items([1]))), "streams are of several flows"),
    ],
)
def test_wrong_arguments_are_refused(inputs, call, problem):
    with pytest.raises(FlowError, match=problem):
        call(inputs["t"])


NAMED = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT * FROM (SELECT k FROM t)",
    "SELECT k FROM (SELECT * FROM t)",
    "WITH w AS (SELECT * FROM t) SELECT k FROM w",
    "SELECT k FROM t WHERE EXISTS (SELECT * FROM t AS u WHERE u.k = t.k)",
    "SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS r FROM t) WHERE r = 1",
)
ALL = (
    "SELECT * FROM t",
    "SELECT t.*, 1 AS one FROM t",
    "SELECT * FROM (SELECT * FROM t)",
    "SELECT k FROM (SELECT DISTINCT * FROM t)",
    "SELECT k FROM t UNION ALL SELECT * FROM t",
    "SELECT k FROM t WHERE k IN (SELECT * FROM t)",
    "WITH w AS (SELECT * FROM t) SELECT * FROM w",
    f"SELECT * FROM TABLE({HOURS})",
)


@pytest.mark.parametrize(("query", "refused"), [*((query, False) for query in NAMED), *((query, True) for query in ALL)])
def test_all_columns_of_a_stream_that_may_have_more_are_refused(query, refused, tmp_path):
    declared = ef.read_csv(tmp_path / "later", schema={"k": "string", "ts": "int64"}, event_time="ts")
    stream = ef.Dataflow("partly").read(declared)
    if refused:
        with pytest.raises(FlowError, match=r"SQL: .*\*: `t` may have columns besides k, ts: name those that the query reads"):
            ef.sql(query, t=stream, ttl="never")
    else:
        assert ef.sql(query, t=stream, ttl="never").node.columns.complete
