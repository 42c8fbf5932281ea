"""Compares the rows at the sinks of a topology with the sequential computation over the lines of its sources exactly.

>>> lines = [{"seq": 0, "key": 3}, {"seq": 1, "key": 5}]
>>> differences("linear", [lines], {"b4": ["line 0 of 3", "line 0 of 3"]})
{'b4': (2, 1, 1)}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from ...harness.errors import BenchmarkError
from .oracles import ORACLES
from .rows import Row


def differences(topology: str, lines: Sequence[Sequence[Row]], found: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, int, int]]:
    """Return for each sink the number of rows, of missing rows and of wrong rows. `lines`: those of each source.

    Raises BenchmarkError if a source skipped or repeated a line.
    """
    for given in lines:
        if sorted(line["seq"] for line in given) != list(range(len(given))):
            raise BenchmarkError(f"benchmark stela: {topology}: a source of {len(given):,} lines skipped or repeated one")
    expected = ORACLES[topology](list(chain.from_iterable(lines)))
    return {sink: _compared(Counter(texts), Counter(found[sink])) for sink, texts in expected.items()}


def _compared(expected: Counter[str], found: Counter[str]) -> tuple[int, int, int]:
    return found.total(), (expected - found).total(), (found - expected).total()
