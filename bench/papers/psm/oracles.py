"""The queries of the price search machine in DuckDB's SQL, over the tables `click`, `impression` and `search`."""

from __future__ import annotations

from typing import Final

MINUTE, TEN_MINUTES = 60_000, 600_000


def _start(length: int, column: str = "timestamp") -> str:
    """Return SQL for the start of the tumbling window of `length` ms, in ms since 1970."""
    return f"epoch_ms({column}) // {length} * {length}"


def _per_click(others: str, starts: str) -> str:
    return f"""
        WITH every AS (
            SELECT product, 1 AS clicks, 0 AS others, {starts} AS start FROM click, range(%(panes)d) panes(pane)
            UNION ALL SELECT product, 0, 1, {starts} FROM {others}, range(%(panes)d) panes(pane)
        )
        SELECT product, sum(others)::DOUBLE / sum(clicks)::DOUBLE AS ratio, make_timestamptz(start * 1000) AS window_start
        FROM every GROUP BY product, start HAVING sum(clicks) > 0
    """


ORACLES: Final[dict[str, str]] = {
    "q1": f"""
        WITH counts AS (SELECT owner, category, count(*) AS clicks, {_start(TEN_MINUTES)} AS start FROM click GROUP BY ALL)
        SELECT owner, category, clicks, make_timestamptz(start * 1000) AS window_start FROM counts
        QUALIFY rank() OVER (PARTITION BY owner, start ORDER BY clicks DESC) = 1
    """,
    "q2": """
        WITH numbered AS (SELECT product, price, row_number() OVER (PARTITION BY product ORDER BY seq) AS n FROM click)
        SELECT ends.product, median(rows.price) AS median_price
        FROM numbered ends JOIN numbered rows ON rows.product = ends.product AND rows.n BETWEEN ends.n - 9999 AND ends.n
        WHERE ends.n % 1000 = 0 GROUP BY ends.product, ends.n
    """,
    "q3": f"""
        SELECT owner, median(price) AS median_price, make_timestamptz(start * 1000) AS window_start
        FROM (SELECT owner, price, {_start(MINUTE)} AS start FROM click) GROUP BY owner, start
    """,
    "q4": _per_click("impression", f"{_start(MINUTE)} - {MINUTE} * pane") % {"panes": 5},
    "q5": _per_click("search", f"{_start(MINUTE)} - {MINUTE} * pane") % {"panes": 1},
}
"""The SQL of each query, by name."""
