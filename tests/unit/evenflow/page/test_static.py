"""The page's own files: small, from here alone, and with the licences of what others wrote."""

from __future__ import annotations

import re

import pytest

from evenflow.page.server import STATIC

VENDOR = STATIC / "vendor"
MODULES = sorted(STATIC.glob("*.js"))


def test_all_that_a_browser_loads_is_below_100_kb():
    loaded = [path for path in STATIC.rglob("*") if path.is_file() and path.suffix != ".LICENSE"]
    assert {path.suffix for path in loaded} == {".js", ".css", ".html", ".svg"}
    assert sum(path.stat().st_size for path in loaded) < 100_000


def test_code_of_other_projects_has_its_licence():
    assert {path.name for path in VENDOR.iterdir()} == {"htm-preact.module.js", "preact.LICENSE", "htm.LICENSE"}


@pytest.mark.parametrize("path", [*MODULES, STATIC / "index.html", STATIC / "page.css"], ids=lambda path: path.name)
def test_nothing_is_loaded_from_elsewhere(path):
    text = path.read_text()
    assert not re.findall(r"(?:https?:)?//[a-z0-9]+\.[a-z]", text)
    for name in re.findall(r'(?:from|src=|href=)\s*"([^"]+)"', text):
        assert name.startswith("/static/"), name
        assert (STATIC / name.removeprefix("/static/")).is_file(), name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_rows_are_shown_as_text_only(path):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", path.read_text())
