"""Formats runs and comparisons as rows of tables and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .comparison import Difference
from .record import Case, Run, Verdict
from .statistics import spread

MOST_VALUES = 12
CASES, VERDICTS = ("case", "median", "spread", "iterations"), ("target", "asked for", "measured", "")


def markdown(run: Run) -> str:
    """Return the whole run: cases, verdicts, checks, conditions, and what was not measured."""
    machine, versions = (", ".join(f"{name} {value}" for name, value in each.items()) for each in (run.machine, run.versions))
    parts = [f"# {run.benchmark}, {run.started}, commit {run.commit}", table(CASES, map(case_row, run.cases))]
    if run.verdicts:
        parts.append(table(VERDICTS, [verdict_row(v, run) for v in run.verdicts]))
    parts += [f"- {line}" for line in notes(run)]
    parts.append(f"Machine: {machine}.\nVersions: {versions}.\nArguments: {', '.join(f'{k}={v}' for k, v in run.arguments.items())}.")
    if run.not_measured:
        parts.append("Not measured:\n\n" + "\n".join(f"- {line}" for line in run.not_measured))
    return "\n\n".join(parts) + "\n"


def case_row(case: Case) -> tuple[str, str, str, str]:
    """Return name, median with unit, spread, and every iteration if they are few."""
    few = len(case.values) <= MOST_VALUES
    each = ", ".join(number(value) for value in case.values) if few else f"{len(case.values)} values, in the JSON"
    return case.name, f"{number(case.median)} {case.unit}", f"{spread(case.values):.0%}", each


def notes(run: Run) -> list[str]:
    """Return the checks that passed, and a warning if the measurement was disturbed."""
    disturbed = [f"other programs used up to {run.busy:.0%} of the machine: repeat it alone before believing it"] if run.disturbed else []
    return [*run.checks, *disturbed]


def verdict_row(verdict: Verdict, run: Run) -> tuple[str, str, str, str]:
    """Return claim, target, measured value, and if the target is met."""
    sign = ">=" if verdict.better == "higher" else "<="
    met = f"{'met' if verdict.met else 'missed'}{', disturbed' if run.disturbed else ''}"
    return verdict.claim, f"{sign} {number(verdict.target)}", number(verdict.measured), met


def difference_row(difference: Difference) -> tuple[str, str, str, str, str]:
    """Return name, before, after, ratio with the noise band, and verdict."""
    before, after = (f"{number(value)} {difference.unit}" for value in (difference.before, difference.after))
    return difference.name, before, after, f"{difference.ratio:.2f} (noise ±{difference.noise:.0%})", difference.verdict


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table.

    >>> print(table(("a", "b"), [("1", "2")]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    first, *rest = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([first, "|" + "---|" * len(header), *rest])


def number(value: float) -> str:
    """Format a number with three significant digits, and a suffix for thousands and millions.

    >>> number(12_345_678), number(2_500), number(0.1234), number(3.0)
    ('12.3 M', '2.5 k', '0.123', '3')
    """
    for suffix, factor in ((" M", 1e6), (" k", 1e3)):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{suffix}"
    return f"{value:.3g}"
