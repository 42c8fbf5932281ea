from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.throughput.data import MAX_DELAY_MS, START_MS, columns, find
from evenflow.engine.errors import ConnectorError


def test_rows_depend_on_their_number_alone():
    whole = columns(np.arange(100), strings=False)
    assert columns(np.arange(40, 60), strings=False).equals(whole.slice(40, 20))


def test_values_are_eighths_with_alerts_among_them():
    values = columns(np.arange(10_000), strings=False).column("value").to_numpy()
    assert (values * 8 == np.round(values * 8)).all()
    assert 0.03 < (values > 3 * values.mean()).mean() < 0.07


def test_a_million_rows_are_a_second_and_no_row_is_older_than_the_delay():
    seq = np.array([0, 999_999, 1_000_000])
    delays = START_MS + seq // 1000 - columns(seq, strings=False).column("ts").to_numpy()
    assert ((delays >= 0) & (delays <= MAX_DELAY_MS)).all()


def test_string_keys_name_the_same_keys():
    numbers, names = (columns(np.arange(50), strings=strings).column("key").to_pylist() for strings in (False, True))
    assert names == [f"key-{number}" for number in numbers]


def test_missing_data_says_how_to_make_it(tmp_path):
    with pytest.raises(ConnectorError, match="evenflow bench data --rows 10 --folder"):
        find(tmp_path, "integers", 10)
