"""The columns of a stream that its readers need, so that a source can skip the others.

>>> needed = Needed(frozenset({"price"})) | Needed(frozenset({"auction"}), frozenset({"id"}))
>>> needed.among(["auction", "bidder", "price"])
['auction', 'price']
>>> needed.among(["auction", "bidder"])  # the error about `price` lists all columns
['auction', 'bidder']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Needed:
    """The columns to read: `names`, and `if_there`, which change the result if they exist.

    `coded`: those of `names` that are only compared for equality, such as the keys of aggregates: a source may provide them as
    dictionaries.
    """

    names: frozenset[str]
    if_there: frozenset[str] = frozenset()
    coded: frozenset[str] = frozenset()

    def __or__(self, other: Needed) -> Needed:
        coded = (self.coded | other.coded) - (self.names - self.coded) - (other.names - other.coded)
        return Needed(self.names | other.names, self.if_there | other.if_there, coded)

    def with_names(self, names: Iterable[str]) -> Needed:
        """Add columns."""
        return self | Needed(frozenset(names))

    def with_coded(self, names: Iterable[str]) -> Needed:
        """Add columns, as dictionaries unless they are needed otherwise too."""
        return self | Needed(frozenset(names), coded=frozenset(names))

    @property
    def described(self) -> str:
        """Return a text for `explain()`."""
        return f"reads {', '.join(sorted(self.names)) or 'one column'}"

    def among(self, there: Sequence[str]) -> list[str]:
        """Return the existing columns to read, in their order.

        All of them if one is missing, so that the error can list them; at least one, for the number of rows.
        """
        if not self.names <= set(there):
            return list(there)
        return [name for name in there if name in self.names or name in self.if_there] or list(there[:1])
