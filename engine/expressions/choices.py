"""Evaluation that computes the values of a `case` only for the rows that take them.

It is slower than `Program.run`, which computes all of them for all rows, and is used if that fails: `when(b != 0).then(a // b)` must
not fail for a zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .program import Program, Step, spread


def run_choosing(program: Program, rows: pa.RecordBatch) -> list[pa.Array]:
    """Return what `program.run` does. Raises one of FAILURES."""
    frame = _Frame(program, {step.slot: step for step in program.steps}, program.loaded(rows), rows.num_rows)
    return [spread(frame.value(slot), rows.num_rows) for slot in program.results]


class _Frame:
    """Some rows, and the values that are known of them; `loaded`: columns and constants by slot."""

    def __init__(self, program: Program, steps: dict[int, Step], loaded: list[Any], count: int) -> None:
        self._program, self._steps, self._count = program, steps, count
        self._loaded, self._values = loaded, list(loaded)

    def value(self, slot: int) -> Any:
        """Return the values of a slot, computed when they are first asked for."""
        step = self._steps.get(slot)
        if step is not None and self._values[slot] is None:
            self._values[slot] = self._chosen(step) if step.choice else step.kernel(*map(self.value, step.arguments))
        return self._values[slot]

    def _chosen(self, step: Step) -> pa.Array:
        *pairs, other = step.arguments
        remaining, pieces, places = np.arange(self._count), list[pa.Array](), list[npt.NDArray[np.intp]]()
        for condition, value in (*zip(pairs[::2], pairs[1::2], strict=True), (None, other)):
            frame = self._of(remaining)
            if condition is None:
                true = np.ones(len(remaining), np.bool_)
            else:
                true = spread(frame.value(condition), len(remaining)).fill_null(False).to_numpy(zero_copy_only=False)
            taken = remaining[true]
            if len(taken):
                pieces.append(spread(self._of(taken).value(value), len(taken)))
                places.append(taken)
            remaining = remaining[~true]
        if not pieces:
            return step.kernel(*(self._of(remaining).value(slot) for slot in step.arguments))
        return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(places))))

    def _of(self, places: npt.NDArray[np.intp]) -> _Frame:
        """Return the frame of some of the rows."""
        if len(places) == self._count:
            return self
        where = pa.array(places)
        loaded = [each.take(where) if isinstance(each, pa.Array) else each for each in self._loaded]
        return _Frame(self._program, self._steps, loaded, len(places))
