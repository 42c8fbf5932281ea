"""`make dist` finds an interpreter of each tested version of Python, and takes none of another version."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_UV = Path("/bin/false")
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def interpreters(monkeypatch, tmp_path):
    """Load the module where the running interpreter, pyenv's folder and the PATH are those of the test."""
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "own"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return runpy.run_path(str(ROOT / ".ci" / "interpreters.py"))


def program(path: Path, version: str) -> Path:
    """Write a program that answers as an interpreter of this version does."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_the_tested_versions_are_the_classifiers(interpreters):
    versions = interpreters["tested_versions"]((ROOT / "pyproject.toml").read_text())
    assert OWN in versions
    assert all(version.startswith("3.") for version in versions)


def test_the_newest_of_pyenv_is_found(interpreters, tmp_path):
    program(tmp_path / "pyenv/versions/3.99.2/bin/python", "3.99")
    newest = program(tmp_path / "pyenv/versions/3.99.10/bin/python", "3.99")
    assert interpreters["find"]("3.99", NO_UV) == newest


def test_one_on_the_path_is_found_last(interpreters, tmp_path):
    on_path = program(tmp_path / "path/python3.99", "3.99")
    assert interpreters["find"]("3.99", NO_UV) == on_path
    own = program(tmp_path / "own/bin/python3.99", "3.99")
    assert interpreters["find"]("3.99", NO_UV) == own


def test_one_that_answers_another_version_or_not_at_all_is_not_taken(interpreters, tmp_path):
    program(tmp_path / "path/python3.99", "3.98")
    (tmp_path / "pyenv/versions/3.99.1/bin").mkdir(parents=True)
    assert interpreters["find"]("3.99", NO_UV) is None
