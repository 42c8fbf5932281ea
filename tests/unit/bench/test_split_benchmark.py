"""What the benchmark of split keys reports of what it has measured."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.bench.split import CASES, Measured, cases_of, verdicts
from evenflow.bench.split_counted import KEY_GROUPS, counted, routed
from evenflow.engine.protocol.routing import RoutingTable, even_table
from evenflow.engine.protocol.split_route import SplitRoute
from evenflow.scheduler.load.load_snapshot import hash_of

HASHES = np.array([hash_of(key) for key in range(2)], np.uint64)
FOUND = {"split": (20_000.0, 1.05), "whole keys": (12_500.0, 1.6), "off": (9_000.0, 2.1)}


def test_split_is_judged_beside_whole_keys():
    assert set(FOUND) == set(CASES)
    cases = [case for name, (rate, imbalance) in FOUND.items() for case in cases_of(name, [Measured(rate, imbalance, 1.5, 1)] * 3, [])]
    gain, even = verdicts(cases)
    assert (gain.measured, even.measured) == pytest.approx((1.6, 1.05))
    assert gain.met
    assert even.met
    assert verdicts([]) == []


def test_counted_rows_are_even_once_the_hot_key_is_split_and_no_row_is_lost():
    split, off = (counted(1.5, 4, CASES[name]) for name in ("split", "off"))
    assert (split.splits, off.splits) == (1, 0)
    assert split.imbalance < 1.1 < off.imbalance
    assert off.capacity < split.capacity <= 4
    table = RoutingTable(even_table(KEY_GROUPS, 4).groups, {}, {int(HASHES[0]): SplitRoute(0, (1, 2), "left")})
    left, right = np.array([90, 10]), np.array([6, 0])
    lefts, rows = routed(left, right, HASHES, table, 4)
    assert lefts.sum(axis=0).tolist() == left.tolist()
    assert (rows - lefts).sum(axis=0).tolist() == [3 * 6, 0]
