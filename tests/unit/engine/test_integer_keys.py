from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evenflow.engine.integer_keys import IntegerKeys


def test_a_slot_that_is_used_again_has_its_new_key():
    keys = IntegerKeys()
    keys.put(np.array([0, 1]), [pa.array([5, 6], pa.int16())], np.array([0, 1]), 2)
    keys.put(np.array([1, 2]), [pa.array([8, 9], pa.int16())], np.array([1, 0]), 4)
    assert keys.columns(np.array([2, 1, 0])) == [pa.array([8, 9, 5], pa.int16())]


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([pa.array(["a"])], id="strings"),
        pytest.param([pa.array([None], pa.int64())], id="a null"),
        pytest.param([pa.array([1], pa.int32())], id="another type"),
        pytest.param([pa.array([1]), pa.array([2])], id="two columns"),
    ],
)
def test_the_first_other_key_ends_it_for_good(columns):
    keys = IntegerKeys()
    keys.put(np.array([0]), [pa.array([5])], np.array([0]), 4)
    keys.put(np.array([1]), columns, np.array([0]), 4)
    assert keys.columns(np.array([0])) is None
    keys.put(np.array([2]), [pa.array([5])], np.array([0]), 4)
    assert keys.columns(np.array([2])) is None
