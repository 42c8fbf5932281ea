"""The columns of a stream that its readers need, so that a source can leave the others unread.

>>> needed = Needed(frozenset({"price"})) | Needed(frozenset({"auction"}), frozenset({"id"}))
>>> needed.among(["auction", "bidder", "price"])
['auction', 'price']
>>> needed.among(["auction", "bidder"])  # whoever misses `price` says which columns there are
['auction', 'bidder']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Needed:
    """`names`: columns that are read; `if_there`: columns that change what happens if there are such.

    `coded`: those of `names` that are only told apart, as the keys of aggregates are: a source may give them as dictionaries.
    """

    names: frozenset[str]
    if_there: frozenset[str] = frozenset()
    coded: frozenset[str] = frozenset()

    def __or__(self, other: Needed) -> Needed:
        coded = (self.coded | other.coded) - (self.names - self.coded) - (other.names - other.coded)
        return Needed(self.names | other.names, self.if_there | other.if_there, coded)

    def with_names(self, names: Iterable[str]) -> Needed:
        """These columns as well."""
        return self | Needed(frozenset(names))

    def with_coded(self, names: Iterable[str]) -> Needed:
        """These columns as well, as dictionaries unless they are needed otherwise too."""
        return self | Needed(frozenset(names), coded=frozenset(names))

    @property
    def described(self) -> str:
        """For `explain()`."""
        return f"reads {', '.join(sorted(self.names)) or 'one column'}"

    def among(self, there: Sequence[str]) -> list[str]:
        """The columns to read of those that are there, in their order.

        All of them if one is missing: the error then tells what there is. At least one, which tells how many rows there are.
        """
        if not self.names <= set(there):
            return list(there)
        return [name for name in there if name in self.names or name in self.if_there] or list(there[:1])
