"""Dropped records, refused or late, as text for people: a few in each window of time, each cut.

>>> sample = Sample()
>>> sample.add("parse", "refused", {"n": "x"}, error=ValueError("no number"))
>>> sample.take()
(DroppedRecord(operator='parse', kind='refused', record="{'n': 'x'}", key='', error='ValueError: no number'),)
>>> sample.take()
()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .batch import Batch
from .errors import RecordError, short, shown

Kind = Literal["refused", "late"]

MOST = 5
"""The records of an operator, of each kind, in a window."""

CHARACTERS = 1024
"""The length of a record's text; a key and an error are shorter."""

FEWER = 256


@dataclass(frozen=True, slots=True)
class DroppedRecord:
    """A record that an operator dropped. `key` and `error` are empty if there is none."""

    operator: str
    kind: Kind
    record: str
    key: str = ""
    error: str = ""


class Sample:
    """The first records that were dropped since the last `take`. More cost only a check of the number."""

    def __init__(self) -> None:
        self._found: list[DroppedRecord] = []

    def add(self, operator: str, kind: Kind, record: Any, *, key: Any = None, error: BaseException | None = None) -> None:
        """Add a dropped record; its text is made now, because the owner may change it."""
        if len(self._found) < MOST:
            why = error.problem if isinstance(error, RecordError) else "" if error is None else shown(error)
            shown_key = "" if key is None else short(key, FEWER)
            self._found.append(DroppedRecord(operator, kind, short(record, CHARACTERS), shown_key, why[:FEWER]))

    def add_late(self, operator: str, rows: Batch) -> None:
        """Add late rows."""
        for row in rows.slice(0, min(rows.num_rows, MOST - len(self._found))).to_rows():
            self.add(operator, "late", row)

    def add_letters(self, letters: Batch) -> None:
        """Add records that a source refused, as dead letters."""
        for letter in letters.slice(0, min(letters.num_rows, MOST - len(self._found))).to_rows():
            key, record, error = (str(letter[name] or "") for name in ("key", "record", "error"))
            text = f"{error}: {letter['message']}"[:FEWER]
            self._found.append(DroppedRecord(str(letter["operator"]), "refused", record[:CHARACTERS], key[:FEWER], text))

    def take(self) -> tuple[DroppedRecord, ...]:
        """Return the sample, and begin the next."""
        found, self._found = tuple(self._found), []
        return found
