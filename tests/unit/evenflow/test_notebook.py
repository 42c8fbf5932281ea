"""Notebooks show jobs, and the cells of the example notebook run in their order."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

import evenflow as ef
from evenflow.balancer.plan import BalanceMove, BalancePlan, KeySplit
from evenflow.pictures.chart import job_chart
from evenflow.scheduler.load.metrics import OperatorLoad
from evenflow.views.polling import JobMonitor

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

NOTEBOOK = Path(__file__).parents[3] / "examples/notebook.ipynb"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def cell(monkeypatch):
    """Replace the parts of IPython that are called, and return the list of what a cell shows."""
    shown = []
    display = ModuleType("IPython.display")
    display.display = lambda picture, display_id: shown.append(picture) or SimpleNamespace(update=shown.append)
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def value_of(source: str, names: dict) -> object:
    """Run a cell; the value of its last line, if that is an expression, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


@pytest.mark.slow
def test_the_example_runs_and_every_cell_shows_something(cell):
    names, shown = {}, []
    for each in json.loads(NOTEBOOK.read_text())["cells"]:
        if each["cell_type"] == "code":
            assert each["outputs"] == []
            value = value_of("".join(each["source"]), names)
            picture = getattr(value, "_repr_svg_", getattr(value, "_repr_html_", lambda value=value: repr(value)))()
            shown.append(picture)
            if picture.startswith("<svg"):
                ET.fromstring(picture)
    text = "\n".join(shown)
    assert all(part in text for part in ("clicks</text>", "load of 2 workers", "plan of", "imbalance", "totals", "person: moves"))
    assert "heat of its key groups" in cell[-1]._repr_html_()
    assert len(cell) >= 2


def test_a_flow_is_drawn_with_its_edges():
    flow = ef.Dataflow("shop")
    left = flow.read(ef.from_items([{"k": 1}], name="left")).key_by("k")
    right = flow.read(ef.from_items([{"k": 1}], name="right")).key_by("k")
    left.join(right, ef.always()).named("pairs").write(ef.to_list([]))
    picture = ET.fromstring(flow._repr_html_())
    assert [text.text for text in picture.iter(f"{SVG}text") if text.text in {"left", "right", "pairs", "to_list"}] == [
        "left", "right", "pairs", "to_list",
    ]  # fmt: skip
    assert len(list(picture.iter(f"{SVG}rect"))) == len(flow.graph.nodes)


def test_an_edge_names_the_columns_that_partition_it():
    flow = ef.Dataflow("shop")
    flow.read(ef.from_items([{"k": 1}])).key_by("k").aggregate(n=ef.count()).write(ef.to_list([]))
    assert "k" in {text.text for text in ET.fromstring(flow._repr_html_()).iter(f"{SVG}text")}


def test_figures_are_shown_as_they_print():
    load = OperatorLoad({"a-0": 0.75, "a-1": 0.25}, {}, (("<b>", 60),), 100)
    assert "&lt;b&gt;" in load._repr_html_()
    plan = BalancePlan(
        (BalanceMove(0, 1, key="JFK"), BalanceMove(0, 1, group=3)),
        1.5,
        1.1,
        1.0,
        100,
        "worker 0 is hot",
        (KeySplit("LAX", 0, (1,), "left"),),
    )
    assert plan._repr_html_().splitlines()[1:] == [
        "key 'JFK': worker 0 to 1", "group 3: worker 0 to 1", "key 'LAX': shared by workers 0, 1</pre>",
    ]  # fmt: skip


def test_a_plan_of_many_moves_names_some():
    plan = BalancePlan(tuple(BalanceMove(0, 1, group=group) for group in range(20)), 1.5, 1.1, 1.0, 100, "worker 0 is hot")
    assert str(plan).splitlines()[-1] == "and 12 more"


def test_a_chart_has_a_line_for_each_worker_and_a_mark_for_each_decision(tmp_path):
    seconds = [
        {"t": at, "rate": 100, "p50": 1.0, "p99": None, "stages": {"count": {"workers": {"count-0": 0.5, "count-1": 0.25}}}}
        for at in range(10)
    ]
    entries = [{"begin": 4.0, "who": "balancer", "what": "moves <keys>", "answer": answer} for answer in ("yes", "no")]
    told = {"job": "shop", "seconds": seconds, "until": 8, "loads": {"count": {}}, "decisions": entries}
    picture = job_chart(told)
    drawn = ET.fromstring(picture.svg)
    words = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"count-0", "count-1", "p50", "-4 s balancer: moves <keys>"} <= set(words)
    assert "p99" not in words
    assert picture.save(tmp_path / "job.svg").read_text() == picture.svg


def test_a_picture_of_a_job_that_has_ended_shows_its_last_history(monkeypatch):
    flow, rows = ef.Dataflow("short"), []
    flow.read(ef.from_items([1])).write(ef.to_list(rows))
    job = flow.run(runtime="local").wait()
    assert "short</text>" in job.plot().svg

    def ended(request):
        raise ef.JobNotRunningError("the job `short` has ended")

    monkeypatch.setattr(job._runtime, "ask", ended)
    assert "short</text>" in job.plot().svg
    with pytest.raises(ef.JobNotRunningError):
        JobMonitor("short", job._runtime).last()
