"""Functions of a user's modules travel with their code, those of installed packages by name."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from ray import cloudpickle

import evenflow as ef
from evenflow.own_modules import by_value


@pytest.fixture
def prices(tmp_path, monkeypatch):
    (tmp_path / "own_prices.py").write_text("FACTOR = 3\n\ndef price(n):\n    return n * FACTOR\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("own_prices")
    sys.modules.pop("own_prices", None)


def test_a_process_without_the_module_can_call_its_function(prices, tmp_path):
    with by_value():
        (tmp_path / "packed").write_bytes(cloudpickle.dumps(prices.price))
    program = f"import pickle; print(pickle.load(open({str(tmp_path / 'packed')!r}, 'rb'))(14))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "42\n"


def test_modules_are_names_again_afterwards(prices):
    with by_value():
        pass
    assert b"FACTOR" not in cloudpickle.dumps(prices.price)


def test_installed_packages_stay_names():
    with by_value():
        packed = cloudpickle.dumps((np.linalg.norm, ef.count, ef.Dataflow))
    assert len(packed) < 500
    assert pickle.loads(packed)[2] is ef.Dataflow


def test_objects_that_libraries_put_among_the_modules_are_no_problem(monkeypatch):
    monkeypatch.setitem(sys.modules, "no_module_at_all", object())
    with by_value():
        assert pickle.loads(cloudpickle.dumps(ef.count)) is ef.count
