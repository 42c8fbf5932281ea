"""Keeps the measured numbers of the README and of the documentation: tables made from the runs in docs/results/.

    .venv/bin/python .ci/results.py add bench/results/latency-2026-11-28T160340Z.json                 # take a run
    .venv/bin/python .ci/results.py add checkpoints=bench/results/recovery-2026-11-28T170112Z.json    # under another name
    .venv/bin/python .ci/results.py write                                                             # write the tables again

A page has a table between `<!-- results: NAME -->` and `<!-- end -->`. Runs are stored without their curves.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from statistics import median

from evenflow.bench.compare.numbers import numbers_table
from evenflow.bench.harness.record import Run, medians
from evenflow.bench.harness.report import number, table
from evenflow.bench.registry import BENCHMARKS

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
RESULTS = ROOT / "docs" / "results"
PLACE = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

SKEW = ("imbalance / floor", "windows until good", "state moved")
SCALING = {
    "steps": "most decisions", "time to converge": "most seconds", "workers off the optimum": "workers off, at most",
    "over-provisioned": "worker-seconds too many", "under-provisioned": "too few", "oscillations": "turns",
}  # fmt: skip

WHERE = ("folder", "browser")
"""The options that are paths of one machine."""

Cell = Callable[[Mapping[str, float], str, str], str]
"""Makes a cell from the medians of the cases, and the names of its row and its column."""


def compared(run: Run) -> str:
    """Return the README's table."""
    return numbers_table(run.cases)


def throughput(run: Run) -> str:
    """Return a row for each task: million rows a second of each system."""
    return _table(
        run,
        "million rows/s",
        ("t1", "t1-strings", "t2", "t2-columns"),
        ("evenflow", "local", "spark", "duckdb", "bytewax", "loop"),
        _millions,
    )


def latency(run: Run) -> str:
    """Return a row for each rate: percentiles of each system."""
    rates = sorted({case.name.partition("/")[0] for case in run.cases}, key=int)
    return _table(run, "rows/s; p50, p99, p99.9 in ms", rates, ("evenflow", "bytewax"), _percentiles)


def migration(run: Run) -> str:
    """Return a row for each strategy: p99 before and while keys move, the largest latency, and the duration."""
    names = {"steady p99": "p99 before, ms", "p99 while it moves": "p99 meanwhile, ms", "largest": "largest, ms", "duration": "takes, s"}
    return _figures(run, "strategy", ("batched", "fluid", "lazy", "sudden", "restart"), names)


def moves(run: Run) -> str:
    """Return a row for each query of NexMark: p99 during each change over the steady p99."""
    changes = ("batched", "lazy", "2 to 3 workers", "restart")
    queries = list(dict.fromkeys(case.name.partition(",")[0] for case in run.cases))
    return _table(run, "p99 meanwhile / steady", queries, changes, _slowdown)


def upgrade(run: Run) -> str:
    """Return a row for each way to bring new code: the longest gap, p99 before and during, and the duration."""
    names = {
        "longest gap": "longest gap, s", "p99 before": "p99 before, ms", "p99 during": "p99 during, ms", "duration": "takes, s",
    }  # fmt: skip
    return _figures(run, "new code by", ("live", "restart"), names)


def recovery(run: Run) -> str:
    """Return a row for each kind of kill: seconds to the first output, and to new output."""
    kinds = [case.name.removesuffix("/new output") for case in run.cases if case.name.endswith("/new output")]
    return _figures(run, "killed", kinds, {"first output": "first output, s", "new output": "new output, s"})


def recovery_by_keys(run: Run) -> str:
    """Return a row for each kind of kill: by number of keys, seconds to the first output, and to new output."""
    found = medians(run.cases)
    kinds = list(dict.fromkeys(name.split(", ")[1] for name in found))
    rows = []
    for kind in kinds:
        of_kind = [name.removesuffix("/new output") for name in found if name.split(", ")[1] == kind and name.endswith("/new output")]
        rows.append((kind, *(f"{_number(found[f'{name}/first output'])}, {_number(found[f'{name}/new output'])}" for name in of_kind)))
    return table(("killed; first, new output, s", *(f"{keys // 10**6} M keys" for keys in run.arguments["keys"])), rows)


def checkpoints(run: Run) -> str:
    """Return a row for each number of keys: throughput kept, p99 over that without checkpoints, and their duration and size."""
    values, rows = {case.name: case.values for case in run.cases}, []
    for keys in dict.fromkeys(case.name.partition(" keys, ")[0] for case in run.cases):
        names = [case.name.rpartition("/")[0] for case in run.cases if case.name.startswith(f"{keys} keys")]
        full, half = (next(name for name in names if name.endswith(speed)) for speed in ("full speed", "half speed"))
        kept = median(a / b for a, b in zip(values[f"{full}/with"], values[f"{full}/without"], strict=True))
        slower = median(a / b for a, b in zip(values[f"{half}/p99 with"], values[f"{half}/p99 without"], strict=True))
        taken, size = median(values[f"{half}/checkpoint takes"]), median(values[f"{half}/checkpoint"])
        rows.append((keys, f"{kept:.2f}", f"{slower:.2f}", _number(taken), _number(size / 2**20)))
    return table(("keys", "throughput kept", "p99, times", "a checkpoint takes, s", "state, MiB"), rows)


def skew(run: Run) -> str:
    """Return a row for each balancer: imbalance over the floor, windows until it is within 5 %, and state moved, over all streams."""
    rows = []
    for policy in ("off", "hotspot", "lpt"):
        of_policy = {name: [c for c in run.cases if c.name.endswith(f", {policy}/{name}")] for name in SKEW}
        largest = max(case.median for case in of_policy["imbalance / floor"])
        windows = [value for case in of_policy["windows until good"] for value in case.values]
        moved = sum(case.median for case in of_policy["state moved"])
        shown = f"{sum(windows) / len(windows):.1f}, at most {max(windows):.0f}" if policy != "off" else ""
        rows.append((f"`{policy}`", f"{largest:.2f}", shown, _number(moved / 1e6)))
    return table(("balancer", "largest mean imbalance / floor", "windows until within 5 %", "MB moved"), rows)


def scaling(run: Run) -> str:
    """Return a row for each policy: decisions after a change of demand, seconds to the last, workers too many or too few, and turns."""
    most = {case.name.removeprefix("linear, "): max(case.values) for case in run.cases if case.name.startswith("linear, ")}
    policies = dict.fromkeys(name.partition("/")[0] for name in most)
    rows = [(f"`{policy}`", *(_number(most[f"{policy}/{name}"]) for name in SCALING)) for policy in policies]
    return table(("policy", *SCALING.values()), rows)


def kafka(run: Run) -> str:
    """Return a row for each system that counts a topic."""
    names = {"evenflow": "`aggregate`", "evenflow-function": "a function per record", "bytewax": "Bytewax"}
    found = medians(run.cases)
    there = [(shown, f"count/{name}") for name, shown in names.items() if f"count/{name}" in found]
    rows = [(shown, _number(found[case]), _number(found[f"{case}, processor"])) for shown, case in there]
    return table(("count", "rows/s", "processor seconds per million rows"), rows)


def nexmark(run: Run) -> str:
    """Return two queries in each row: million rows a second of evenflow and of Flink, and the ratio."""
    found = medians(run.cases)
    queries = [name.removesuffix("/flink") for name in found if name.endswith("/flink")]
    rates = [(found[f"{query}/evenflow"], found[f"{query}/flink"]) for query in queries]
    cells = [(query, f"{_number(a / 1e6)}, {_number(b / 1e6)}", f"{a / b:.1f}") for query, (a, b) in zip(queries, rates, strict=True)]
    half = -(-len(cells) // 2)
    rows = [left + right for left, right in zip_longest(cells[:half], cells[half:], fillvalue=("", "", ""))]
    return table(("query", "evenflow, Flink", "ratio") * 2, rows)


def wide(run: Run) -> str:
    """Return a row for each of the main figures: a column for every second number of workers."""
    names = {"reports": "ms/s", "balance plan": "ms", "routing of a batch": "ms", "checkpoint": "ms", "script of the page": "ms/s"}
    found = medians(run.cases)
    counts = sorted({int(name.partition(" ")[0]) for name in found})[::2]
    rows = [(f"{name}, {unit}", *(_number(found.get(f"{count} workers/{name}")) for count in counts)) for name, unit in names.items()]
    return table(("workers", *(f"{count:,}" for count in counts)), rows)


TABLES: dict[str, Callable[[Run], str]] = {
    "compare": compared, "throughput": throughput, "latency": latency, "migration": migration, "nexmark-moves": moves, "recovery": recovery,
    "recovery-of-large-state": recovery_by_keys, "nexmark": nexmark, "wide": wide, "upgrade": upgrade, "growth": migration,
    "checkpoints": checkpoints, "skew": skew, "scaling": scaling, "kafka": kafka,
}  # fmt: skip


def _table(run: Run, corner: str, rows: Iterable[str], columns: Iterable[str], cell: Cell) -> str:
    """Return a table of the rows and columns that have a cell."""
    found = medians(run.cases)
    cells = {row: {column: cell(found, row, column) for column in columns} for row in rows}
    there = [column for column in columns if any(each[column] for each in cells.values())]
    return table((corner, *there), [(row, *(each[column] for column in there)) for row, each in cells.items() if any(each.values())])


def _figures(run: Run, corner: str, rows: Sequence[str], names: Mapping[str, str]) -> str:
    found = medians(run.cases)
    there = [row for row in rows if any(f"{row}/{name}" in found for name in names)]
    cells = ((_number(found.get(f"{row}/{name}")) for name in names) for row in there)
    return table((corner, *names.values()), [(row, *each) for row, each in zip(there, cells, strict=True)])


def _millions(found: Mapping[str, float], row: str, column: str) -> str:
    rate = found.get(f"{row}/{column}")
    return "" if rate is None else _number(rate / 1e6)


def _percentiles(found: Mapping[str, float], row: str, column: str) -> str:
    values = [found.get(f"{row}/{column}/{name}") for name in ("p50", "p99", "p99.9")]
    return "" if None in values else ", ".join(map(_number, values))


def _slowdown(found: Mapping[str, float], row: str, column: str) -> str:
    meanwhile, steady = (found.get(f"{row}, {column}/{name}") for name in ("p99 meanwhile", "steady p99"))
    return "" if meanwhile is None or not steady else f"{meanwhile / steady:.2g}"


def _number(value: float | None) -> str:
    return "" if value is None else number(value)


def origin(run: Run) -> str:
    """Return the line below a table: commit, machine, date."""
    machine = f"{run.machine['processor']}, {run.machine['cores']} cores, {run.machine['memory_gib']} GiB"
    disturbed = f"; other programs used up to {run.busy:.0%} of the machine" if run.disturbed else ""
    return f"`evenflow bench run {command(run)}`, commit {run.commit}, {machine}, {run.started[:10]}{disturbed}."


def command(run: Run) -> str:
    """Return the words of the command of a run: its benchmark, and the options that are not as by default."""
    words = [run.benchmark]
    for argument in BENCHMARKS[run.benchmark].arguments if run.benchmark in BENCHMARKS else ():
        given = run.arguments.get(argument.attribute, argument.default)
        if given not in ([], argument.default) and argument.attribute not in WHERE:
            words += [argument.flag, ",".join(map(str, given)) if isinstance(given, list) else str(given)]
    return " ".join(words)


def filled(page: str, runs: Mapping[str, Run]) -> str:
    """Return a page with all its tables. Raises KeyError for one without a run."""
    return PLACE.sub(lambda found: f"{found[1]}{TABLES[found[2]](runs[found[2]])}\n\n{origin(runs[found[2]])}\n{found[3]}", page)


def stored() -> dict[str, Run]:
    """Return the runs in docs/results, by name."""
    return {path.stem: Run.read(path) for path in sorted(RESULTS.glob("*.json"))}


def add(path: Path, name: str = "") -> None:
    """Store a run without its curves and timelines under a name, by default its benchmark's, in place of an earlier one."""
    run = json.loads(path.read_text())
    for case in run["cases"]:
        case["details"] = [{name: value for name, value in each.items() if name != "timeline"} for each in case["details"]]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name or run['benchmark']}.json").write_text(json.dumps({**run, "series": {}}, indent=1) + "\n")


def main() -> None:
    """Take the runs that are named, and write all tables."""
    verb, *paths = sys.argv[1:] or ["write"]
    if verb == "add":
        for given in paths:
            name, _, path = given.rpartition("=")
            add(Path(path), name)
    for page in PAGES:
        page.write_text(filled(page.read_text(), stored()))


if __name__ == "__main__":
    main()
