"""The sequential computation of each topology: the texts at each sink, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from .rows import Row, appended, cut, failed, parsed, passes, passes_again

Texts = Mapping[str, Iterable[str]]


def linear(lines: Sequence[Row]) -> Texts:
    """Return all lines."""
    return {"b4": [parsed(line)["text"] for line in lines]}


def star(lines: Sequence[Row]) -> Texts:
    """Return all lines of both sources at both sinks."""
    texts = [parsed(line)["text"] for line in lines]
    return {"up": texts, "down": texts}


def diamond(lines: Sequence[Row]) -> Texts:
    """Return every line four times."""
    return {"sink": [parsed(line)["text"] for line in lines for _ in range(4)]}


def page_load(lines: Sequence[Row]) -> Texts:
    """Return the shortened lines that pass both filters."""
    rows = [cut(parsed(line)) for line in lines]
    return {"sink": [appended(row)["text"] for row in rows if passes(row) and passes_again(row)]}


def processing(lines: Sequence[Row]) -> Texts:
    """Return the shortened lines: those that pass, and all."""
    rows = [cut(parsed(line)) for line in lines]
    return {"output_1": [row["text"] for row in rows if passes(row)], "output_2": [row["text"] for row in rows]}


def network(lines: Sequence[Row]) -> Texts:
    """Return for each id the numbers of its successes and of every second failure, from 1 on."""
    failures = Counter(row["id"] for row in map(parsed, lines) if failed(row))
    successes = Counter(row["id"] for row in map(parsed, lines) if not failed(row))
    ids = failures.keys() | successes.keys()
    return {"join": [f"{one}: {n + 1}" for one in ids for n in range(failures[one] // 2 + successes[one])]}


ORACLES: Final[dict[str, Callable[[Sequence[Row]], Texts]]] = {
    function.__name__: function for function in (linear, star, diamond, page_load, processing, network)
}
"""The computation of each topology by name."""
