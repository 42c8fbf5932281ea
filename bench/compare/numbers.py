"""The five numbers of the README, as rows of a table: made from the cases of `evenflow bench run compare`.

>>> from ..harness.record import Case
>>> cases = [Case(f"t1/{system}", "rows/s", "higher", (rate,)) for system, rate in (("evenflow", 20e6), ("spark", 2e6), ("duckdb", 40e6))]
>>> numbers(cases)[0].others
'Spark 2; DuckDB, as a batch query, 40'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from ..harness.record import Case, medians
from ..harness.report import number, table

HEADER = ("on one machine", "evenflow", "others")


@dataclass(frozen=True, slots=True)
class Number:
    """A row of the table: what was measured, and the values with their units."""

    measured: str
    evenflow: str
    others: str


def numbers(cases: Sequence[Case]) -> list[Number]:
    """Return a row for each part that was measured with all of its systems."""
    found = medians(cases)
    return [row for make in (_windows, _function, _nexmark, _joining, _recovery) if (row := make(found)) is not None]


def numbers_table(cases: Sequence[Case]) -> str:
    """Return the rows as a Markdown table."""
    return table(HEADER, [(row.measured, row.evenflow, row.others) for row in numbers(cases)])


def _windows(found: Mapping[str, float]) -> Number | None:
    if not {"t1/evenflow", "t1/spark", "t1/duckdb"} <= found.keys():
        return None
    others = f"Spark {_millions(found['t1/spark'])}; DuckDB, as a batch query, {_millions(found['t1/duckdb'])}"
    return Number("count and sum per key and 1 s window, Parquet to Parquet", f"{_millions(found['t1/evenflow'])} M rows/s", others)


def _function(found: Mapping[str, float]) -> Number | None:
    if not {"t2/evenflow", "t2/bytewax", "t2/loop"} <= found.keys():
        return None
    others = f"Bytewax {_millions(found['t2/bytewax'])}; a plain loop {_millions(found['t2/loop'])}"
    return Number("a Python function with state, called per record", f"{_millions(found['t2/evenflow'])} M rows/s", others)


def _nexmark(found: Mapping[str, float]) -> Number | None:
    queries = [name.partition("/")[0] for name in found if name.endswith("/flink") and f"{name.partition('/')[0]}/evenflow" in found]
    if not queries:
        return None
    ours, theirs = ([found[f"{query}/{system}"] for query in queries] for system in ("evenflow", "flink"))
    mean = geometric_mean(a / b for a, b in zip(ours, theirs, strict=True))
    measured = f"{len(queries)} queries of NexMark ({', '.join(queries)}), from CSV"
    return Number(measured, f"{_span(ours)} M rows/s", f"Flink SQL {_span(theirs)}; geometric mean of the ratios {mean:.1f}")


def _joining(found: Mapping[str, float]) -> Number | None:
    ratios = {
        change: [found[name] / found[f"{start}/steady p99"] for name, start in _changes(found) if start.endswith(f", {change}")]
        for change in ("2 to 3 workers", "restart")
    }
    if not all(ratios.values()):
        return None
    live, restart = (_least_and_most(each, "{:.2g}") for each in ratios.values())
    measured = "p99 latency while an operator goes from 2 to 3 workers"
    return Number(measured, f"{live} times the steady p99", f"savepoint and restart: {restart} times")


def _changes(found: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield the names of the cases of the latency during changes, with the names of the changes."""
    for name in found:
        start, _, measured = name.rpartition("/")
        if measured == "p99 meanwhile":
            yield name, start


def _recovery(found: Mapping[str, float]) -> Number | None:
    names = {"evenflow, new process/new output", "evenflow, warm spare/new output", "Spark/new output"}
    if not names <= found.keys():
        return None
    spare, new = (found[f"evenflow, {kind}/new output"] for kind in ("warm spare", "new process"))
    others = f"Spark {found['Spark/new output']:.1f} s"
    return Number("recovery after one of two workers was killed, 1 M keys", f"{spare:.1f} s; {new:.1f} s without a warm spare", others)


def _millions(rate: float) -> str:
    return number(rate / 1e6)


def _span(rates: Sequence[float]) -> str:
    return _least_and_most([rate / 1e6 for rate in rates], "{:.3g}")


def _least_and_most(values: Sequence[float], form: str) -> str:
    least, most = form.format(min(values)), form.format(max(values))
    return least if least == most else f"{least} to {most}"
