"""Comparison of results from several channels with those of an undisturbed run of the same rows."""

from __future__ import annotations


def in_order(rows):
    return sorted(rows, key=lambda row: sorted(map(repr, row.items())))


def newest(rows):
    """Return each key's last update; a key's updates may arrive by several channels, so the count orders them."""
    return {row["key"]: row for row in sorted(rows, key=lambda row: row["n"])}


def assert_same(results, expected):
    """Compare results by operator; the rows of the source are the input of both."""
    for operator in results.keys() - {"rows"}:
        alike = newest if operator == "updates" else in_order
        assert alike(results[operator]) == alike(expected[operator]), operator
