"""The scripts of the pictures fit the code and the tutorial, though only `make pictures` runs it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pictures() -> ModuleType:
    return script("pictures")


@pytest.fixture
def moving() -> ModuleType:
    return script("moving_picture")


def test_script_finds_all_that_it_imports_and_the_program_of_the_tutorial(pictures):
    assert pictures.tutorial_flow().name == "shops"


def message_of(loads):
    """Return a page's message of two workers with these loads, a pair a second, and of a move in the third second."""
    seconds = [
        {
            "t": 100 + at,
            "rate": 99_900.0,
            "p99": None if at == 0 else 8.0 + at,
            "stages": {"totals": {"workers": {"totals-0": a, "totals-1": b}}},
        }
        for at, (a, b) in enumerate(loads)
    ]
    move = {"stage": "totals", "answer": "yes", "begin": 102.5, "what": "moves 7 key groups <by> batched"}
    return {"seconds": seconds, "decisions": [move, {**move, "answer": "no"}, {**move, "begin": 50.0}]}


def test_moving_picture_has_a_frame_a_second_and_the_moves(moving):
    svg = moving.picture(message_of([(0.4, 0.4), (0.8, 0.3), (0.8, 0.3), (0.5, 0.5)]), 101.0)
    ET.fromstring(svg)
    assert svg.count("moves 7 key groups &lt;by&gt; batched") == 1
    assert "100,000 rows/s through two workers" in svg
    heights = re.findall(r'attributeName="height" dur="4s" repeatCount="indefinite" values="([^"]*)"', svg)
    assert heights == ["44.0;88.0;88.0;55.0;55.0", "44.0;33.0;33.0;55.0;55.0"]
    assert len(svg) < 10_000


def test_job_of_the_moving_picture_is_planned(moving):
    assert "totals" in str(moving.flow().explain())
