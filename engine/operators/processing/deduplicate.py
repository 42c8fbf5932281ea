"""The operator `deduplicate`: the first row of each combination of values, and with a time to live the first of each such period.

The state is a row per combination: the time until which its rows are dropped. After a row that passes at time t, those of its
combination with times before t + ttl are dropped, also if they are earlier than t. Invariant: unless a row is late, whether it
passes depends only on the rows of its combination before it. A combination is forgotten once the watermark has reached its end,
so a late row may pass again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...batch import Batch, Times
from ...columns import Columns
from ...context import Context, Emit
from ...errors import RecordError
from ...keyed_state.arrays import StateArrays
from ...keyed_state.kinds.opening import open_arrays
from ...keys.encoding import encode_keys
from ...needed import Needed
from ...protocol.elements import MAX_TIME, MIN_TIME
from ...state_description import StateDescription, columns_text, seconds_text
from ...types.arrays import Array
from ..keyed import KeyedInstance, KeyedOperator

SEEN, UNTIL = "seen", "until"
"""The columns of the state: whether a row has passed, and the first time at which the next one passes."""

PARTS = 64
"""The number of parts of the keys in which expired combinations are searched, all parts twice in a time to live.

So no search takes long.
"""

ROUNDS = 32
"""The number of rounds over all combinations that find passing rows; the rest of a batch is processed row by row."""


@dataclass(frozen=True, eq=False)
class Deduplicate(KeyedOperator):
    """An operator that passes the first row for each value of the columns `keys`, by arrival.

    After `ttl` microseconds of event time, if set, it passes another.
    """

    keys: tuple[str, ...]
    ttl: int | None = None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        return inputs[0]

    def state_description(self) -> StateDescription:
        ttl = "none" if self.ttl is None else seconds_text(self.ttl)
        return StateDescription("a deduplicate", {"columns": columns_text(self.keys), "ttl": ttl})

    def open(self, context: Context) -> DeduplicateInstance:
        return DeduplicateInstance(self, context)

    def needs(self, wanted: Needed | None) -> Needed | None:
        return wanted

    def describe(self) -> str:
        return f"first by {', '.join(self.keys)}" + ("" if self.ttl is None else f", again after {self.ttl / 1e6:g} s")


class DeduplicateInstance(KeyedInstance):
    """An instance that reads and writes the states of a batch's keys at once."""

    state: StateArrays

    def __init__(self, operator: Deduplicate, context: Context) -> None:
        columns = {SEEN: np.dtype(np.bool_)} | ({} if operator.ttl is None else {UNTIL: np.dtype(np.int64)})
        super().__init__(context, operator.keys, open_arrays(context, operator.keys, columns))
        self._ttl = operator.ttl
        self._part = 0
        self._swept = MIN_TIME
        """The watermark up to which parts were swept."""

    def process(self, batch: Batch, emit: Emit) -> None:
        keys = encode_keys(batch.rows, self.keys, self.context.name)
        self.note_load(keys.columns, np.bincount(keys.codes, minlength=keys.count))
        state = self.state.read(keys.columns)
        if self._ttl is None:
            passing = _firsts(keys.codes, keys.count)[~state[SEEN]]
            self.state.write({SEEN: np.ones(keys.count, np.bool_)})
        else:
            if batch.times is None:
                raise RecordError(self.context.name, "ttl= needs event time: give the source event_time=, or the stream with_time")
            until = np.where(state[SEEN], state[UNTIL], MIN_TIME)
            passing = passing_rows(keys.codes, batch.times, until, self._ttl)
            self.state.write({SEEN: np.ones(keys.count, np.bool_), UNTIL: until})
        if len(passing) == batch.num_rows:
            emit(batch)
        elif len(passing):
            emit(batch.take(np.sort(passing)))

    def advance(self, watermark: int, emit: Emit) -> None:
        if self._ttl is None or watermark == MAX_TIME:
            return
        if self._swept == MIN_TIME:
            self._swept = watermark

        def expired(state: Mapping[str, Array]) -> npt.NDArray[np.bool_]:
            over: npt.NDArray[np.bool_] = state[UNTIL] <= watermark
            return over

        step = max(self._ttl // (2 * PARTS), 1)
        due = (watermark - self._swept) // step
        for _ in range(min(due, PARTS)):
            self.state.sweep(self._part, PARTS, expired)
            self._part = (self._part + 1) % PARTS
        self._swept += due * step


def passing_rows(codes: npt.NDArray[np.intp], times: Times, until: npt.NDArray[np.int64], ttl: int) -> npt.NDArray[np.intp]:
    """Return the indices of the rows that pass, in any order, and update `until`, by combination; `codes`: each row's
    combination.

    >>> until = np.array([MIN_TIME, 25])
    >>> passing_rows(np.array([0, 0, 0, 1]), np.array([10, 15, 20, 20]), until, 10).tolist(), until.tolist()
    ([0, 2], [30, 25])
    """
    passed = [np.zeros(0, np.intp)]
    left = np.flatnonzero(times >= until[codes])
    for _ in range(ROUNDS):
        if not len(left):
            break
        firsts = _firsts(codes[left], len(until))
        firsts = left[firsts[firsts >= 0]]
        until[codes[firsts]] = times[firsts] + ttl
        passed.append(firsts)
        left = left[times[left] >= until[codes[left]]]
    for place in left.tolist():
        if times[place] >= until[codes[place]]:
            until[codes[place]] = times[place] + ttl
            passed.append(np.array([place], np.intp))
    return np.concatenate(passed)


def _firsts(codes: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.intp]:
    """Return the index of the first row of each code, -1 for a code without one."""
    firsts = np.full(count, -1, np.intp)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return firsts
