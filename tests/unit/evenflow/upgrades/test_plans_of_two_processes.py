"""A program that is run twice, in processes with other seeds of hashes, describes the same."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
from programs import PRICES, PROGRAM, module_of

from evenflow.engine.plan.upgrade.comparison import compare

END = """
if __name__ == "__main__":
    import sys
    from ray import cloudpickle
    sys.stdout.buffer.write(cloudpickle.dumps(build().plan()))
"""


@pytest.fixture
def plan_of_process(tmp_path):
    """`plan_of_process(name, seed, prices)`: the packed plan of a program that a new process ran."""

    def run(name, seed, prices=PRICES):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "prices.py").write_text(prices)
        (folder / "orders.py").write_text(PROGRAM + END)
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run([sys.executable, folder / "orders.py"], env=environment, capture_output=True, check=True).stdout

    module_of("prices", PRICES)
    yield run
    sys.modules.pop("prices", None)


def test_program_that_runs_twice_is_unchanged(plan_of_process):
    old, new = plan_of_process("old", "1"), plan_of_process("new", "2")
    found = compare(pickle.loads(old), pickle.loads(new))
    assert {change.verdict for change in found.operators} == {"unchanged"}
    assert len(found.operators) > 12


def test_changed_module_counts_though_both_plans_refer_to_it_by_name(plan_of_process):
    old = plan_of_process("old", "1")
    new = plan_of_process("new", "2", prices=PRICES.replace("FACTOR = 100", "FACTOR = 1000"))
    assert [change.operator for change in compare(pickle.loads(old), pickle.loads(new)).operators if change.verdict != "unchanged"] == [
        "converted"
    ]
