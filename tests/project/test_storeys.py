"""Storeys: the folders of a package import each other in one direction only.

A room is a folder with the files directly in it; a module directly in a package is a room of its own.
"""

from __future__ import annotations

import pytest
from module_imports import ROOT
from test_import_cycles import cycles, module_graph

PACKAGES = ("state", "engine", "balancer", "scheduler", "connectors", "actors")

SCHEDULER = (
    "checks",
    "load",
    "policies.dataflow",
    "policies",
    "policies.nodes",
    "protocol",
    "configs",
    "record.restoring",
    "record",
    "parts",
    "job",
)
"""The storeys of `scheduler/`, from the ground up."""


def room(module: str, package: str) -> str:
    """Return the room of a module, as a dotted name within the package."""
    inside = module.removeprefix(f"evenflow.{package}.")
    folder, _, _ = inside.rpartition(".")
    return inside if (ROOT / package / inside.replace(".", "/")).is_dir() else folder or inside


def rooms(package: str) -> dict[str, set[str]]:
    """Return, for each room of a package, the other rooms that it imports."""
    found: dict[str, set[str]] = {}
    for module, imported in module_graph().items():
        if module.startswith(f"evenflow.{package}."):
            own = room(module, package)
            inside = {room(other, package) for other in imported if other.startswith(f"evenflow.{package}.")}
            found.setdefault(own, set()).update(inside - {own})
    return {own: others & found.keys() for own, others in found.items()}


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_do_not_import_each_other(package):
    assert cycles(rooms(package)) == []


def test_imports_in_the_scheduler_point_down():
    storey = {name: number for number, name in enumerate(SCHEDULER)}
    found = rooms("scheduler")
    assert found.keys() == storey.keys()
    up = [f"{own} imports {other}" for own, others in found.items() for other in others if storey[other] > storey[own]]
    assert up == []


def test_a_module_directly_in_a_package_is_a_room_of_its_own():
    assert room("evenflow.engine.errors", "engine") == "errors"
    assert room("evenflow.scheduler.policies.nodes.placement", "scheduler") == "policies.nodes"
    assert room("evenflow.scheduler.policies.nodes", "scheduler") == "policies.nodes"
