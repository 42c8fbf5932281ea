"""The reference has every public name, command, setting and metric."""

from __future__ import annotations

import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

import evenflow as ef
from evenflow.cli.command_line import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {path.name: path.read_text() for path in (DOCS / "reference").glob("*.md")}


@pytest.fixture(scope="module")
def tables() -> dict[str, str]:
    """Return the tables that Sphinx puts into the pages."""
    return {name: make() for name, make in runpy.run_path(str(DOCS / "generated_tables.py"))["TABLES"].items()}


def test_every_public_name_has_an_entry(tables):
    entries = set(re.findall(r"^\.\. auto(?:class|function):: evenflow\.(\w+)", "\n".join(PAGES.values()), re.MULTILINE))
    errors = set(re.findall(r"`(?:ef\.)?(\w+)`", PAGES["errors.md"]))
    settings = set(re.findall(r"^## `(?:\w+=)?(\w+)", tables["settings"], re.MULTILINE))
    assert set(ef.__all__) - entries - errors - settings == set()
    assert entries - set(ef.__all__) == set()


def test_tables_that_pages_ask_for_are_made(tables):
    asked = [name for page in PAGES.values() for name in re.findall(r"<!-- table: (\w+) -->", page)]
    assert sorted(asked) == sorted(tables)


def test_every_command_is_shown_with_its_arguments(tables):
    assert re.findall(r"^## `evenflow (\w+)`$", tables["commands"], re.MULTILINE) == list(COMMANDS)
    assert "usage: evenflow scale" in tables["commands"]
    assert "--strategy NAME" in tables["commands"]


def test_every_setting_is_shown_with_its_default(tables):
    for group in fields(ef.JobConfig):
        kind = group.default_factory
        names = [setting.name for setting in fields(kind)] if isinstance(kind, type) else [group.name]
        assert [name for name in names if f"| `{name}` |" not in tables["settings"]] == []
    assert "| `interval` | `Duration \\| None` | `'10s'` |" in tables["settings"]


def test_every_metric_is_shown(tables):
    for name in (
        "evenflow_rows_in_total",
        "evenflow_useful_share",
        "evenflow_split_lag",
        "evenflow_latency_seconds",
        "evenflow_restarts_total",
    ):
        assert f"| `{name}` |" in tables["metrics"]
