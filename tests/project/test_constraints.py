"""The pins of `constraints.txt` fit together. `make dist` resolves every extra with them."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"


def pins() -> dict[str, str]:
    lines = [line.strip() for line in CONSTRAINTS.read_text().splitlines()]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if "==" in line)}


def test_no_package_that_is_installed_refuses_the_pin_of_another():
    pinned, environment = pins(), {**default_environment(), "extra": ""}
    refused = []
    for package in distributions():
        for text in package.requires or ():
            need = Requirement(text)
            version = pinned.get(canonicalize_name(need.name))
            if version is not None and (need.marker is None or need.marker.evaluate(environment)) and version not in need.specifier:
                refused.append(f"{package.name} needs {need}, and {need.name}=={version} is pinned")
    assert refused == []
