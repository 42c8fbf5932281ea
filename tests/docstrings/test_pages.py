"""Tests and files that the pages about guarantees and recovery name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("guarantees.md", "recovery.md")
FOLDERS = "engine|state|scheduler|actors|evenflow|connectors|balancer"


@pytest.mark.parametrize("page", PAGES)
def test_files_that_it_names_are_there(page):
    named = re.findall(rf"`((?:{FOLDERS})/[\w/]+\.py)", (ROOT / "docs" / page).read_text())
    named += re.findall(r"\]\((\w+\.md)", (ROOT / "docs" / page).read_text())
    missing = [name for name in named if not (ROOT / (f"docs/{name}" if name.endswith(".md") else name)).exists()]
    assert named
    assert not missing


def test_tests_that_show_the_guarantees_are_there():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/guarantees.md").read_text())
    assert len(named) > 20
    assert [f"{file}::{test}" for file, test in named if f"def {test}(" not in (ROOT / file).read_text()] == []
