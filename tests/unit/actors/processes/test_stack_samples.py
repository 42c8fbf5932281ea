"""Errors if py-spy can't trace a worker's process. The cluster's test of the page traces one."""

from __future__ import annotations

import sys

import pytest

from evenflow.actors.processes.stack_samples import NOT_ALLOWED, NOT_THERE, most_seen, own_stacks, why_failed


def test_a_node_without_py_spy_is_an_error_that_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_stacks(None, 1) == ("", NOT_THERE)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("Permission Denied: Try running again with elevated permissions", NOT_ALLOWED),
        ("Error: Operation not permitted (os error 1)", NOT_ALLOWED),
        ("Error: Failed to find python version\n\nCaused by: ...", "py-spy has failed: Error: Failed to find python version"),
        ("", "py-spy has failed: without output"),
    ],
)
def test_the_error_quotes_the_complaint_of_py_spy(said, problem):
    assert why_failed(said) == problem


def test_the_number_of_stacks_is_bounded():
    stacks = "\n".join(f"main;step {number};inner {number}" for number in range(1, 1000))
    kept = most_seen(stacks, 500)
    assert len(kept) <= 500
    assert kept.splitlines()[0] == "main;step 999;inner 999"
