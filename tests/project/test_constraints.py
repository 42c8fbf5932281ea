"""The pins of `constraints.txt` fit together, and every extra installs with them."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
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


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_extras_install_with_the_constraints():
    """Resolve all extras from the package registry with uv: what fits together also fits alone."""
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "compile", "--quiet", "--python", sys.executable, "--all-extras", "-c", CONSTRAINTS, ROOT / "pyproject.toml"]
    resolved = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert resolved.returncode == 0, resolved.stderr
