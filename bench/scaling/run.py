"""Every scaling policy on DS2's word count in model time, while demand doubles and halves.

The model is a simulated cluster with rates, so the results are the same on any machine. `bench run nexmark-ds2` drives jobs on Ray.
"""

from __future__ import annotations

import argparse
from typing import Any

from ...scheduler.policies.registry import POLICIES
from ..harness.benchmark import Argument, Benchmark, Say, some_of
from ..harness.plots import panels
from ..harness.record import Findings, Run
from .model import OVERHEADS, simulate, verdicts

COLUMNS, PANEL = 3, (4.2, 2.6)
"""Panels in a row, and inches of one."""


def run(given: argparse.Namespace, say: Say) -> Findings:
    """Simulate the policies with every overhead."""
    courses = {(policy, overhead): simulate(policy, overhead) for overhead in OVERHEADS for policy in given.policies}
    found = Findings([], verdicts(courses))
    for (policy, overhead), course in courses.items():
        name = f"{f'{overhead:.0%} overhead' if overhead else 'linear'}, {policy}"
        say(course.line(name))
        found += Findings(course.cases(name), series={name: course.drawn})
    return found


def draw(run: Run, figure: Any) -> None:
    """Draw the workers of each policy that scales linearly, and the fewest that are enough."""
    names = [name for name in run.series if name.startswith("linear")]
    for axes, name in zip(panels(figure, len(names), COLUMNS, PANEL), names, strict=True):
        series = run.series[name]
        for colour, (operator, workers) in zip(("tab:blue", "tab:orange"), series["workers"].items(), strict=True):
            axes.plot(series["time"], workers, color=colour, drawstyle="steps-post", label=operator)
            least = f"{operator}, fewest that are enough"
            axes.plot(series["time"], series["optimum"][operator], color=colour, linestyle="--", linewidth=1.0, label=least)
        axes.set_title(name, fontsize="medium")
        axes.set_xlabel("seconds")
        axes.set_ylabel("workers")
        axes.set_ylim(bottom=0)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


BENCHMARK = Benchmark(
    "scaling",
    "every scaling policy while demand doubles and halves, in a model",
    (Argument("--policies", some_of(POLICIES), list(POLICIES), "policies"),),
    run,
    ("jobs: `bench run nexmark-ds2` scales them on Ray", "the chance of single records: latency here is backlog"),
    draw,
)
