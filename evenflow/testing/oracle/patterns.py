"""Patterns in plain Python, for the oracle: every match by its definition, then what each one skips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from ...engine.expressions.expression import Expression
from ...engine.operators.processing.match_pattern import MatchPattern
from ...engine.patterns.pattern import Pattern
from ...engine.patterns.step import Contiguity
from .expressions import is_true
from .oracle import EPOCH, Record, Records, Row, evaluate, key_of

Path = tuple[tuple[int, int], ...]
"""The matched rows, each with its step: places in the rows of a key and in the pattern."""


@evaluate.register
def _(operator: MatchPattern, inputs: Sequence[Records]) -> Records:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in inputs[0].items:
        groups.setdefault(key_of(record.row, operator.keys), []).append(record)
    found = list[Record]()
    for records in groups.values():
        timed = sorted(((record.time or 0, record.row) for record in records), key=lambda row: row[0])
        found += [_result(path, timed, operator) for path in matches(timed, operator.pattern)]
    return Records(sorted(found, key=lambda record: record.time or 0))


def matches(rows: Sequence[tuple[int, Row]], pattern: Pattern) -> list[Path]:
    """Return the matches in the rows of a key, which are in order: those that no earlier match skips."""
    floor, kept = 0, list[Path]()
    for path in sorted(_all(rows, pattern), key=_order):
        if path[0][0] >= floor:
            kept.append(path)
            floor = max(floor, _resumes(path, pattern))
    return kept


def _all(rows: Sequence[tuple[int, Row]], pattern: Pattern) -> Iterator[Path]:
    """Yield every match by trying every row as the next one."""
    search = _Search(rows, pattern)
    for first in range(len(rows)):
        if search.meets(0, first, ()):
            yield from search.from_path(((first, 0),))


class _Search:
    def __init__(self, rows: Sequence[tuple[int, Row]], pattern: Pattern) -> None:
        self.rows, self.pattern, self.steps = rows, pattern, pattern.steps

    def meets(self, step: int, row: int, path: Path) -> bool:
        condition, given = self.steps[step].condition, dict(self.rows[row][1])
        if isinstance(condition, Expression):
            return is_true(condition.tree, given)
        if not self.steps[step].reads_matched:
            return bool(condition(given))
        matched: dict[str, list[Row]] = {}
        for number, place in path:
            matched.setdefault(self.steps[place].name, []).append(dict(self.rows[number][1]))
        return bool(condition(given, matched))

    def from_path(self, path: Path) -> Iterator[Path]:
        """Yield the matches that begin with `path`."""
        last, step = path[-1]
        count = sum(place == step for _, place in path)
        end = self.rows[path[0][0]][0] + self.pattern.within
        inside = [row for row in range(last + 1, len(self.rows)) if self.rows[row][0] < end]
        following = next((place for place in range(step + 1, len(self.steps)) if not self.steps[place].absent), None)
        if self.steps[step].most is None or count < (self.steps[step].most or 0):
            for row in inside:
                if self._reaches(path, row, step, self.steps[step].repeats):
                    yield from self.from_path((*path, (row, step)))
        if count < self.steps[step].least:
            return
        if following is None:
            if not self._comes(range(step + 1, len(self.steps)), inside, path):
                yield path
            return
        for row in inside:
            between = range(last + 1, row)
            if self._reaches(path, row, following, self.steps[following].contiguity) and not self._comes(
                range(step + 1, following), between, path
            ):
                yield from self.from_path((*path, (row, following)))

    def _reaches(self, path: Path, row: int, step: int, contiguity: Contiguity) -> bool:
        """Return True if the row may be the next one: it meets the step's condition, and so do none of those that it must be before."""
        if not self.meets(step, row, path):
            return False
        last = path[-1][0]
        if contiguity == "next":
            return row == last + 1
        return contiguity == "followed_by_any" or not any(self.meets(step, between, path) for between in range(last + 1, row))

    def _comes(self, steps: range, rows: Sequence[int], path: Path) -> bool:
        return any(self.meets(step, row, path) for step in steps for row in rows)


def _order(path: Path) -> tuple[int, int, list[int], list[int]]:
    return path[0][0], path[-1][0], [row for row, _ in path], [step for _, step in path]


def _resumes(path: Path, pattern: Pattern) -> int:
    if isinstance(pattern.skip, tuple):
        of_step = [row for row, step in path if pattern.steps[step].name == pattern.skip[1]]
        return of_step[0] if pattern.skip[0] == "to_first" else of_step[-1]
    return {"no_skip": 0, "to_next": path[0][0] + 1, "past_last": path[-1][0] + 1}[pattern.skip]


def _result(path: Path, rows: Sequence[tuple[int, Row]], operator: MatchPattern) -> Record:
    """Return the match as a row. Its event time is `match_end`, although a match that waits for an earlier one has a later one."""
    steps = operator.pattern.steps
    start, last = rows[path[0][0]][0], rows[path[-1][0]][0]
    end = start + operator.pattern.within if steps[-1].absent else last
    row = {name: rows[path[0][0]][1][name] for name in operator.keys}
    for place, step in enumerate(steps):
        of_step = [rows[number][1] for number, of in path if of == place]
        if not step.absent:
            row[step.name] = of_step if step.repeated else of_step[0]
    return Record({**row, "match_start": EPOCH + timedelta(microseconds=start), "match_end": EPOCH + timedelta(microseconds=end)}, end)
