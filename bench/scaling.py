"""Elastic scaling: every policy on DS2's word count, skewed words, Stela's topologies, and the latency while workers come and go.

Two of the experiments run in model time, on a simulated cluster with rates, and one on simulated nodes: their results are the same on any
machine. The others are jobs on Ray whose workers sleep for each record instead of computing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..actors.cluster import start_cluster
from . import scaling_hot, scaling_latency, scaling_live, scaling_nodes, scaling_policies, scaling_skew
from .conditions import record
from .record import Case, Run, Verdict
from .scaling_course import Course

PARTS = ("model", "skew", "nodes", "ray", "hot", "latency")
ON_RAY = ("ray", "hot", "latency")

NOT_MEASURED = (
    "operators that compute, on a core each: workers wait here, for two cores can't show what a third worker brings to them",
    "the chance of single records in model time: latency there is backlog",
    "nodes that come and go while a job runs: Stela's are simulated, on Ray `evenflow bench run stela` measures them",
    "the cost of measuring, which `bench run overhead` has",
)


def run(*, parts: Sequence[str], policies: Sequence[str], say: Callable[[str], None]) -> Run:
    """The chosen parts; `policies`: those that drive the word count on Ray."""
    gathered = _Gathered(say)
    if set(parts) & set(ON_RAY):
        start_cluster()
    if "model" in parts:
        gathered.model()
    if "skew" in parts:
        gathered.skew()
    if "nodes" in parts:
        gathered.nodes()
    if "ray" in parts:
        gathered.ray(policies)
    if "hot" in parts:
        gathered.hot()
    if "latency" in parts:
        gathered.latency()
    arguments = {
        "parts": list(parts), "policies": list(policies), "model_demands": list(scaling_policies.DEMANDS),
        "model_phase_seconds": scaling_policies.LENGTH, "ray_demands": list(scaling_live.DEMANDS),
        "ray_phase_seconds": scaling_live.LENGTH, "ray_interval_seconds": scaling_live.INTERVAL,
    }  # fmt: skip
    return record(
        "scaling", arguments, gathered.cases, gathered.verdicts, checks=gathered.checks, not_measured=NOT_MEASURED, series=gathered.series
    )  # fmt: skip


class _Gathered:
    """What a run gathers, part by part."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.cases: list[Case] = []
        self.verdicts: list[Verdict] = []
        self.checks: list[str] = []
        self.series: dict[str, Any] = {}

    def model(self) -> None:
        courses = scaling_policies.run()
        for (policy, overhead), course in courses.items():
            self._course(f"model, {'linear' if not overhead else f'{overhead:.0%} overhead'}, {policy}", course)
        self.verdicts += scaling_policies.verdicts(courses)

    def skew(self) -> None:
        streams = scaling_skew.run()
        self.cases += scaling_skew.cases_of(streams)
        self.verdicts += scaling_skew.verdicts(streams)
        for one in streams:
            self._say(scaling_skew.line_of(one))

    def nodes(self) -> None:
        results = scaling_nodes.run()
        for name, scaled in results.items():
            self.cases += scaling_nodes.cases_of(name, scaled)
            self._say(f"{name}: {scaled.before:,.0f} records/s, stela {scaled.stela:,.0f}, round robin {scaled.round_robin:,.0f}")
        self.verdicts += scaling_nodes.verdicts(results)

    def ray(self, policies: Iterable[str]) -> None:
        lived = {}
        for policy in policies:
            lived[policy] = one = scaling_live.measure(policy)
            self._course(f"Ray, {policy}", one.course, one.busy)
            self.series[f"decisions, {policy}"] = one.reasons
            self.series[f"latency, {policy}"] = one.curve
        self.verdicts += scaling_live.verdicts(lived)

    def hot(self) -> None:
        found = {}
        for share in scaling_hot.NEEDS:
            found[share] = hot = scaling_hot.measure(share)
            self.cases += scaling_hot.cases_of(share, hot)
            self._say(scaling_hot.line_of(share, hot))
        self.verdicts += scaling_hot.verdicts(found)

    def latency(self) -> None:
        scalings = scaling_latency.run()
        for name, scaling in scalings.items():
            self.cases += scaling_latency.cases_of(name, scaling)
            self.series[f"scaling, {name}"] = scaling.curve
            self._say(scaling_latency.line_of(name, scaling))
        self.verdicts += scaling_latency.verdicts(scalings)
        self.checks += scaling_latency.doubts(scalings)

    def _course(self, name: str, course: Course, busy: float | None = None) -> None:
        self.cases += course.cases(name, () if busy is None else ({"busy_before": busy},))
        self.series[name] = course.drawn
        self._say(course.line(name))
