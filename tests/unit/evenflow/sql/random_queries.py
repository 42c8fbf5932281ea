"""Random queries over two small streams, each as Flink writes it and as DuckDB does, and the rows that DuckDB has for it.

The texts differ where the dialects do: windows are functions of Flink's and arithmetic in DuckDB, and whole numbers divide alike in
neither.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

import evenflow as ef

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

COLUMNS = pa.schema([
    ("id", pa.int64()), ("k", pa.string()), ("g", pa.int64()), ("v", pa.int64()), ("x", pa.float64()), ("s", pa.string()),
    ("ts", pa.timestamp("us", "UTC")),
])  # fmt: skip
"""The columns of both streams; `k`, `g`, `v`, `x` and `s` may be null."""

NAMES = pa.table({"code": ["a", "b", "c"], "name": ["Ann", "Bob", None]})
"""The table for lookups."""


@dataclass(frozen=True)
class Text:
    """An expression as Flink and as DuckDB write it."""

    flink: str
    duck: str

    @staticmethod
    def same(text: str) -> Text:
        return Text(text, text)


@dataclass(frozen=True)
class RandomQuery:
    """A query. `key`: the columns by which its rows are updated, None if it is append-only."""

    flink: str
    duck: str
    key: tuple[str, ...] | None = None


def stream_of(seed: str, rows: int = 40) -> pa.Table:
    """Return the rows of a stream, in the order of their arrival, up to three seconds out of order."""
    choose = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if choose.random() < 0.15 else value

    made = [
        {
            "id": number, "k": maybe(choose.choice("abcd")), "g": maybe(choose.randrange(3)), "v": maybe(choose.randrange(-9, 20)),
            "x": maybe(choose.choice((-1.5, 0.0, 0.25, 2.0, 7.75))), "s": maybe(choose.choice(("", "tea", "Täube", "x%y", "a_b"))),
            "ts": EPOCH + timedelta(milliseconds=number * 700 - choose.randrange(3_000)),
        }
        for number in range(rows)
    ]  # fmt: skip
    return pa.Table.from_pylist(made, schema=COLUMNS)


class Maker:
    """A maker of random queries by a random generator."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose

    def query(self) -> RandomQuery:
        kinds: list[Callable[[], RandomQuery]] = [
            self.projection, self.running, self.windowed, self.interval_join, self.window_join, self.looked_up, self.united, self.ranked,
            self.distinct, self.nested, self.twice, self.member, self.versioned, self.extreme, self.extreme_of_counts,
        ]  # fmt: skip
        return self.choose.choice(kinds)()

    def number(self, depth: int = 2, of: str = "") -> Text:
        leaves = [f"{of}v", f"{of}g", f"{of}id", str(self.choose.randrange(-5, 12))]
        if not depth or self.choose.random() < 0.25:
            return Text.same(self.choose.choice(leaves))
        kind = self.choose.randrange(9)
        if kind <= 2:
            a, b = self.number(depth - 1, of), self.number(depth - 1, of)
            sign = self.choose.choice("+-*")
            return Text(f"({a.flink} {sign} {b.flink})", f"({a.duck} {sign} {b.duck})")
        if kind == 3:
            a, by = self.number(depth - 1, of), self.choose.choice((2, 3, 7))
            return Text(f"MOD({a.flink}, {by})", f"({a.duck} % {by})")
        if kind == 4:
            a, by = self.number(depth - 1, of), self.choose.choice((2, 3, 7))
            return Text(f"({a.flink} / {by})", f"trunc({a.duck} / {by})::BIGINT")
        if kind == 5:
            test, a, b = self.test(depth - 1, of), self.number(depth - 1, of), self.number(depth - 1, of)
            return Text(
                f"CASE WHEN {test.flink} THEN {a.flink} ELSE {b.flink} END", f"CASE WHEN {test.duck} THEN {a.duck} ELSE {b.duck} END"
            )
        if kind == 6:
            a, b = self.number(depth - 1, of), self.number(depth - 1, of)
            return Text(f"COALESCE({a.flink}, {b.flink})", f"COALESCE({a.duck}, {b.duck})")
        if kind == 7:
            return Text(f"CHAR_LENGTH({of}s)", f"LENGTH({of}s)")
        a = self.number(depth - 1, of)
        return Text(f"ABS({a.flink})", f"ABS({a.duck})")

    def text(self, of: str = "") -> Text:
        parts = (f"UPPER({of}s)", f"{of}k || {of}s", f"COALESCE({of}k, 'none')", f"SUBSTRING({of}s, 2, 2)", f"REPLACE({of}s, 'a', 'oo')")
        return Text.same(self.choose.choice(parts))

    def test(self, depth: int = 2, of: str = "") -> Text:
        kind = self.choose.randrange(9) if depth else self.choose.randrange(5)
        if kind <= 1:
            a, b = self.number(max(depth - 1, 0), of), self.number(0, of)
            sign = self.choose.choice(("<", "<=", ">", ">=", "=", "<>"))
            return Text(f"({a.flink} {sign} {b.flink})", f"({a.duck} {sign} {b.duck})")
        if kind == 2:
            return Text.same(self.choose.choice((f"{of}k IN ('a', 'c')", f"{of}k NOT IN ('b')", f"{of}g IN (0, 2)", f"{of}s LIKE '%a%'")))
        if kind == 3:
            return Text.same(self.choose.choice((f"{of}v IS NULL", f"{of}s IS NOT NULL", f"{of}x > 0.1", f"{of}v BETWEEN -3 AND 8")))
        if kind == 4:
            return Text.same(f"{of}s LIKE 'a_b'")
        if kind == 5:
            a = self.test(depth - 1, of)
            return Text(f"(NOT {a.flink})", f"(NOT {a.duck})")
        a, b, word = self.test(depth - 1, of), self.test(depth - 1, of), self.choose.choice(("AND", "OR"))
        return Text(f"({a.flink} {word} {b.flink})", f"({a.duck} {word} {b.duck})")

    def where(self, of: str = "") -> Text:
        if self.choose.random() < 0.4:
            return Text.same("")
        test = self.test(2, of)
        return Text(f" WHERE {test.flink}", f" WHERE {test.duck}")

    def aggregates(self) -> tuple[str, str]:
        """Return some aggregates, named a0, a1, ..."""
        flink, duck = [], []
        for place in range(self.choose.randrange(1, 4)):
            value = self.number(1)
            test = self.test(1)
            where = self.choose.random() < 0.3
            filtered = (f" FILTER (WHERE {test.flink})", f" FILTER (WHERE {test.duck})") if where else ("", "")
            kind = self.choose.choice(("COUNT(*)", "COUNT", "SUM", "MIN", "MAX", "AVG", "DISTINCT", "MEAN"))
            ours, theirs = {
                "COUNT(*)": (f"COUNT(*){filtered[0]}", f"COUNT(*){filtered[1]}"),
                "COUNT": (f"COUNT({value.flink}){filtered[0]}", f"COUNT({value.duck}){filtered[1]}"),
                "SUM": (f"SUM({value.flink}){filtered[0]}", f"(SUM({value.duck}){filtered[1]})::BIGINT"),
                "MIN": (f"MIN({value.flink}){filtered[0]}", f"MIN({value.duck}){filtered[1]}"),
                "MAX": (f"MAX(s){filtered[0]}", f"MAX(s){filtered[1]}"),
                "AVG": (f"AVG({value.flink}){filtered[0]}", f"trunc(AVG({value.duck}){filtered[1]})::BIGINT"),
                "DISTINCT": (f"COUNT(DISTINCT {value.flink}){filtered[0]}", f"COUNT(DISTINCT {value.duck}){filtered[1]}"),
                "MEAN": (f"AVG(x){filtered[0]}", f"AVG(x){filtered[1]}"),
            }[kind]
            flink.append(f"{ours} AS a{place}")
            duck.append(f"{theirs} AS a{place}")
        return ", ".join(flink), ", ".join(duck)

    def columns(self, of: str = "") -> tuple[str, str]:
        """Return some computed columns, named c0, c1, ..."""
        made = [self.choose.choice((lambda: self.number(2, of), lambda: self.text(of)))() for _ in range(self.choose.randrange(1, 4))]
        texts = [(f"{each.flink} AS c{place}", f"{each.duck} AS c{place}") for place, each in enumerate(made)]
        return ", ".join(flink for flink, _ in texts), ", ".join(duck for _, duck in texts)

    def projection(self) -> RandomQuery:
        (flink, duck), where = self.columns(), self.where()
        return RandomQuery(f"SELECT id, {flink} FROM t{where.flink}", f"SELECT id, {duck} FROM t{where.duck}")

    def nested(self) -> RandomQuery:
        (flink, duck), where = self.columns(), self.where()
        sign = self.choose.choice(("<", ">=", "<>"))
        return RandomQuery(
            f"WITH q AS (SELECT *, {flink} FROM t{where.flink}) SELECT id, c0 FROM q WHERE id {sign} 20 AND c0 IS NOT NULL",
            f"WITH q AS (SELECT *, {duck} FROM t{where.duck}) SELECT id, c0 FROM q WHERE id {sign} 20 AND c0 IS NOT NULL",
        )

    def keys(self) -> tuple[list[str], list[str]]:
        """Return the expressions of a GROUP BY, and their names."""
        names = self.choose.sample(["k", "g", "MOD(id, 3)", "UPPER(s)"], self.choose.randrange(1, 3))
        return names, [f"key{place}" for place in range(len(names))]

    def running(self) -> RandomQuery:
        (keys, names), (flink, duck), where = self.keys(), self.aggregates(), self.where()
        shown = ", ".join(f"{key} AS {name}" for key, name in zip(keys, names, strict=True))
        by = ", ".join(keys)
        ours = f"SELECT {shown}, {flink} FROM t{where.flink} GROUP BY {by}"
        theirs = f"SELECT {shown}, {duck} FROM t{where.duck} GROUP BY {by}".replace("MOD(id, 3)", "(id % 3)")
        return RandomQuery(ours, theirs, tuple(names))

    def windows(self) -> tuple[str, str, int]:
        """Return tumbling or sliding windows over `t`, in Flink's SQL and in DuckDB's, with the column `ws`; and their seconds."""
        size = self.choose.choice((2, 5, 10))
        bucket = f"time_bucket(INTERVAL {size} SECOND, ts, TIMESTAMPTZ '2026-01-01 00:00:00+00')"
        if self.choose.random() < 0.5:
            return f"TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '{size}' SECOND)", f"SELECT *, {bucket} AS ws FROM t", size
        length = self.choose.choice((size * 2, size + 1))
        table = f"HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '{size}' SECOND, INTERVAL '{length}' SECOND)"
        starts = f"SELECT *, {bucket} - to_seconds({size} * i) AS ws FROM t, range(2) each(i)"
        return table, f"SELECT * FROM ({starts}) WHERE ts < ws + to_seconds({length})", length

    def windowed(self) -> RandomQuery:
        flink, duck = self.aggregates()
        by = self.choose.sample(["k", "g"], self.choose.randrange(0, 3))
        keys = "".join(f"{each}, " for each in by)
        (table, windows, length), where = self.windows(), self.where()
        return RandomQuery(
            f"SELECT {keys}window_start AS ws, window_end AS we, {flink} FROM TABLE({table}){where.flink} "
            f"GROUP BY {keys}window_start, window_end",
            f"SELECT {keys}ws, ws + to_seconds({length}) AS we, {duck} FROM ({windows}){where.duck} GROUP BY {keys}ws",
        )

    def interval_join(self) -> RandomQuery:
        lower, upper = sorted(self.choose.randrange(-4, 6) for _ in range(2))
        how = self.choose.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"))
        within = (
            f"u.ts BETWEEN t.ts {'-' if lower < 0 else '+'} INTERVAL '{abs(lower)}' SECOND AND "
            f"t.ts {'-' if upper < 0 else '+'} INTERVAL '{abs(upper)}' SECOND"
        )
        where = self.where("t.") if how == "JOIN" else Text.same("")
        shown = f"t.id AS one, u.id AS two, {'t.v + u.v AS total' if how == 'JOIN' else 't.v AS total'}"
        text = f"SELECT {shown} FROM t {how} u ON t.k = u.k AND {within}"
        return RandomQuery(f"{text}{where.flink}", f"{text}{where.duck}")

    def window_join(self) -> RandomQuery:
        size = self.choose.choice((3, 6))

        def side(table: str) -> Text:
            bucket = f"time_bucket(INTERVAL {size} SECOND, ts, TIMESTAMPTZ '2026-01-01 00:00:00+00')"
            return Text(
                f"(SELECT k, COUNT(*) AS n, window_start, window_end FROM TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '{size}' "
                f"SECOND)) GROUP BY k, window_start, window_end) {table}{table}",
                f"(SELECT k, COUNT(*) AS n, {bucket} AS window_start, {bucket} + to_seconds({size}) AS window_end FROM {table} "
                f"GROUP BY ALL) {table}{table}",
            )

        how, one, two = self.choose.choice(("JOIN", "LEFT JOIN")), side("t"), side("u")
        on = "tt.k = uu.k AND tt.window_start = uu.window_start AND tt.window_end = uu.window_end"
        shown = "tt.k AS k, tt.window_start AS ws, tt.n AS one, uu.n AS two"
        return RandomQuery(
            f"SELECT {shown} FROM {one.flink} {how} {two.flink} ON {on}", f"SELECT {shown} FROM {one.duck} {how} {two.duck} ON {on}"
        )

    def extreme(self) -> RandomQuery:
        (table, windows, length), column = self.windows(), self.choose.choice("vxsg")
        most, sign = self.choose.choice((("MAX", "="), ("MAX", ">="), ("MIN", "="), ("MIN", "<="), ("MAX", "<=")))
        key, by = self.choose.choice((("", ""), ("k AS key, ", "k, ")))
        if not key and (most, sign) == ("MAX", "<="):  # a join needs equal columns
            sign = "="
        until = self.choose.choice(("<", "<", "<=")) if key or sign == "=" else "<"
        more = ("", " AND a.id > 9", " AND a.k <> m.most" if column == "s" else " AND m.most <> a.id")
        where = f"a.ts >= m.ws AND a.ts {until} m.we{self.choose.choice(more)}"
        rows = self.choose.choice(("t AS a JOIN ({}) AS m", "({}) AS m JOIN t AS a"))
        text = (
            f"SELECT a.id AS id, a.k AS k, m.most AS most, m.ws AS ws, m.we AS we FROM {rows} "
            f"ON a.{column} {sign} m.most{' AND a.k = m.key' if key else ''} WHERE {where}"
        )
        return RandomQuery(
            text.format(
                f"SELECT {key}{most}({column}) AS most, window_start AS ws, window_end AS we FROM TABLE({table}) "
                f"GROUP BY {by}window_start, window_end"
            ),
            text.format(f"SELECT {key}{most}({column}) AS most, ws, ws + to_seconds({length}) AS we FROM ({windows}) GROUP BY {by}ws"),
        )

    def extreme_of_counts(self) -> RandomQuery:
        table, windows, length = self.windows()
        flink, duck = self.choose.choice((("COUNT(*)", "COUNT(*)"), ("SUM(v)", "SUM(v)::BIGINT")))
        most, sign = self.choose.choice((("MAX", "="), ("MAX", ">="), ("MIN", "<=")))
        inner, outer = self.where(), self.choose.choice(("", " WHERE c.k <> 'b'", " WHERE m.most > 1"))
        ours = (
            f"SELECT k, {flink} AS n, window_start AS ws, window_end AS we FROM TABLE({table}){inner.flink} "
            "GROUP BY k, window_start, window_end"
        )
        theirs = f"SELECT k, {duck} AS n, ws, ws + to_seconds({length}) AS we FROM ({windows}){inner.duck} GROUP BY k, ws"
        text = (
            "SELECT c.k AS k, c.n AS n, c.ws AS ws, m.we AS we FROM ({}) AS c "
            f"JOIN (SELECT {most}(n) AS most, ws, we FROM ({{}}) GROUP BY ws, we) AS m "
            f"ON c.ws = m.ws AND c.we = m.we AND c.n {sign} m.most{outer}"
        )
        return RandomQuery(text.format(ours, ours), text.format(theirs, theirs))

    def looked_up(self) -> RandomQuery:
        how = self.choose.choice(("JOIN", "LEFT JOIN"))
        return RandomQuery(
            f"SELECT t.id, n.name FROM t {how} names FOR SYSTEM_TIME AS OF PROCTIME() AS n ON LOWER(t.k) = n.code",
            f"SELECT t.id, n.name FROM t {how} names n ON LOWER(t.k) = n.code",
        )

    def united(self) -> RandomQuery:
        one, two = self.number(), self.number()
        return RandomQuery(
            f"SELECT id, {one.flink} AS c FROM t UNION ALL SELECT id + 100, {two.flink} FROM u",
            f"SELECT id, ({one.duck})::BIGINT AS c FROM t UNION ALL SELECT id + 100, ({two.duck})::BIGINT FROM u",
        )

    def ranked(self) -> RandomQuery:
        most, order = self.choose.randrange(1, 4), self.choose.choice(("v DESC, id", "x, id DESC", "id"))
        text = (
            f"SELECT k, id, v, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS place FROM t "
            f"WHERE v IS NOT NULL AND x IS NOT NULL) AS r WHERE place <= {most}"
        )
        return RandomQuery(text, text, ("k", "place") if most > 1 else ("k",))

    def twice(self) -> RandomQuery:
        (flink, duck), inner = (
            self.choose.choice((("MAX(v)", "MAX(v)"), ("SUM(v)", "SUM(v)::BIGINT"), ("COUNT(v)", "COUNT(v)"))),
            self.where(),
        )
        ours = "SUM(m) AS a0, COUNT(*) AS a1, MIN(m) AS a2, AVG(m) AS a3"
        theirs = "SUM(m)::BIGINT AS a0, COUNT(*) AS a1, MIN(m) AS a2, trunc(AVG(m))::BIGINT AS a3"
        return RandomQuery(
            f"SELECT g, {ours} FROM (SELECT g, k, {flink} AS m FROM t{inner.flink} GROUP BY g, k) GROUP BY g",
            f"SELECT g, {theirs} FROM (SELECT g, k, {duck} AS m FROM t{inner.duck} GROUP BY g, k) GROUP BY g",
            ("g",),
        )

    def member(self) -> RandomQuery:
        lower, upper = sorted(self.choose.randrange(-4, 6) for _ in range(2))
        where, inner = self.where("t."), self.test(1, "u.")
        join = " AND " if where.flink else " WHERE "
        if self.choose.random() < 0.4:
            ours, theirs = (f"{join}t.g IN (SELECT u.g FROM u WHERE {text})" for text in (inner.flink, inner.duck))
        else:
            no = self.choose.choice(("", "NOT "))
            within = (
                f"u.ts BETWEEN t.ts {'-' if lower < 0 else '+'} INTERVAL '{abs(lower)}' SECOND AND "
                f"t.ts {'-' if upper < 0 else '+'} INTERVAL '{abs(upper)}' SECOND"
            )
            ours, theirs = (
                f"{join}{no}EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND {within} AND {text})" for text in (inner.flink, inner.duck)
            )
        return RandomQuery(f"SELECT t.id, t.v FROM t{where.flink}{ours}", f"SELECT t.id, t.v FROM t{where.duck}{theirs}")

    def versioned(self) -> RandomQuery:
        how = self.choose.choice(("JOIN", "LEFT JOIN"))
        asof = {"JOIN": "ASOF JOIN", "LEFT JOIN": "ASOF LEFT JOIN"}[how]
        return RandomQuery(
            f"SELECT t.id AS one, u.ts AS at FROM t {how} u FOR SYSTEM_TIME AS OF t.ts AS u ON t.k = u.k",
            f"SELECT t.id AS one, u.ts AS at FROM t {asof} u ON t.k = u.k AND t.ts >= u.ts",
        )

    def distinct(self) -> RandomQuery:
        where = self.where()
        return RandomQuery(f"SELECT DISTINCT k, g FROM t{where.flink}", f"SELECT DISTINCT k, g FROM t{where.duck}")


def flow_of(query: RandomQuery, inputs: dict[str, pa.Table], rows: list[Any]) -> ef.Dataflow:
    """Return the flow of a query, whose sink is `rows`."""
    flow = ef.Dataflow("random")
    words = query.flink.replace("(", " ").replace(")", " ").replace(",", " ").split()
    streams = {
        name: flow.read(ef.from_items(table, event_time="ts", max_delay="3s", name=name)) for name, table in inputs.items() if name in words
    }
    tables = {"names": NAMES} if "names" in words else {}
    ef.sql(query.flink, ttl="never", **streams, **tables).write(ef.to_list(rows))
    return flow


def expected(query: RandomQuery, inputs: dict[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    """Return DuckDB's rows."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, table in {**inputs, "names": NAMES}.items():
            database.register(name, table)
        return Counter(_plain(row) for row in database.execute(query.duck).fetchall())


def last_rows(query: RandomQuery, rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Return the rows that count: all, or of a stream of updates the last one of each key."""
    if query.key is not None:
        rows = [*{tuple(row[name] for name in query.key): row for row in rows}.values()]
    return Counter(_plain(tuple(row.values())) for row in rows)


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(value, 9) if isinstance(value, float) and math.isfinite(value) else value for value in row)
