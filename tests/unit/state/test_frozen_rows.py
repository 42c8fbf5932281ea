from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.state.frozen_rows import FrozenRows


@given(
    rows=st.sets(st.integers(0, 49)),
    chunk=st.integers(1, 7),
    steps=st.lists(st.one_of(st.none(), st.sets(st.integers(0, 60))), max_size=30),
)
def test_every_row_comes_once_as_it_was_whatever_changes_meanwhile(rows, chunk, steps):
    column = np.arange(61) * 10
    those = np.isin(np.arange(50), sorted(rows))
    frozen = FrozenRows(those, lambda where: dict(zip(where.tolist(), column[where].tolist(), strict=True)), chunk)
    given_out = []
    for step in steps:
        if step is None:
            given_out += [piece] if (piece := next(frozen, None)) is not None else []
        else:
            changed = np.array(sorted(step), np.int64)
            frozen.before(changed)
            column[changed] = -1
    given_out += list(frozen)
    assert sum(map(len, given_out)) == len(rows)
    assert {slot: value for piece in given_out for slot, value in piece.items()} == {slot: slot * 10 for slot in rows}
    assert frozen.over


def test_nothing_is_copied_at_the_moment_itself():
    asked = []
    frozen = FrozenRows(np.ones(10, np.bool_), lambda where: asked.append(len(where)) or len(where), chunk=4)
    assert asked == []
    assert list(frozen) == asked == [4, 4, 2]


def test_few_rows_of_many_make_few_chunks_and_many_that_are_together_none_that_is_larger():
    those = np.zeros(10_000, np.bool_)
    those[::100] = True
    assert list(FrozenRows(those, len, chunk=50)) == [50, 50]
    those[:] = False
    those[:100] = True
    assert list(FrozenRows(those, len, chunk=30)) == [30, 30, 30, 10]
