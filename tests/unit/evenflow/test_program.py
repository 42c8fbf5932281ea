"""Programs are run up to the start of the wanted job."""

from __future__ import annotations

import sys
from textwrap import dedent

import pytest

import evenflow as ef
from evenflow.program import flow_of

SHOP = """
    import sys
    import evenflow as ef
    from prices import FACTOR

    def price(row):
        return {**row, "price": row["n"] * FACTOR}

    if __name__ == "__main__":
        flow = ef.Dataflow("shop")
        flow.read(ef.from_items([{"n": 1}])).map(price).write(ef.to_list([]))
        flow.run(runtime="local").wait()
        raise SystemExit(f"started with {sys.argv}")
"""


@pytest.fixture
def program(tmp_path):
    def write(text, **others):
        for name, other in {"prices": "FACTOR = 2", **others}.items():
            (tmp_path / f"{name}.py").write_text(dedent(other))
        path = tmp_path / "shop.py"
        path.write_text(dedent(text))
        return path

    yield write
    sys.modules.pop("prices", None)


def test_the_flow_of_a_program_is_found_and_its_job_not_started(program):
    words, path = list(sys.argv), list(sys.path)
    flow = flow_of(program(SHOP), "shop")
    assert [chained.name for stage in flow.plan().stages for chained in stage.chain] == ["from_items", "map", "to_list"]
    assert (sys.argv, sys.path) == (words, path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import evenflow", "starts no job `shop`"),
        ("1 / 0", "failed before it started job `shop`: ZeroDivisionError"),
        ("raise SystemExit(3)", "failed before it started job `shop`"),
        (SHOP.replace('Dataflow("shop")', 'Dataflow("other")'), "starts the job `other` before `shop`"),
    ],
)
def test_a_program_without_the_job_is_refused(program, text, problem):
    with pytest.raises(ef.FlowError, match=problem):
        flow_of(program(text), "shop")


def test_a_program_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ef.FlowError, match="is no file"):
        flow_of(tmp_path / "missing.py", "shop")


def test_programs_run_as_usual_afterwards(program):
    flow_of(program(SHOP), "shop")
    rows = []
    flow = ef.Dataflow("shop")
    flow.read(ef.from_items([{"n": 1}])).write(ef.to_list(rows))
    assert flow.plan().name == "shop"
