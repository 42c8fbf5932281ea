"""How results that came by several channels are compared with those of a run of the same rows in which nothing happened."""

from __future__ import annotations


def in_order(rows):
    return sorted(rows, key=lambda row: sorted(map(repr, row.items())))


def newest(rows):
    """Each key's last update; those of one key may come by several channels, so the count puts them in order."""
    return {row["key"]: row for row in sorted(rows, key=lambda row: row["n"])}


def assert_same(results, expected):
    """By operator; the rows that the source gave are the input of both."""
    for operator in results.keys() - {"rows"}:
        alike = newest if operator == "updates" else in_order
        assert alike(results[operator]) == alike(expected[operator]), operator
