"""Placeholders for the values of a Helm chart, in resources that are otherwise the same as without Helm.

Invariant: each value is written by `toJson`, so a text is quoted and a list needs no indentation, whatever the user sets.
"""

from __future__ import annotations

from dataclasses import dataclass

RELEASE = "{{ .Release.Name }}"
"""The release's name, which is a part of names and labels."""

BRACES = "{{"


@dataclass(frozen=True, slots=True)
class Expression:
    """A template expression that stands for a whole value."""

    text: str


@dataclass(frozen=True, slots=True)
class Each:
    """All items of a chart's list, or all entries of a mapping, among others: `[..., Each("env")]`, `{..., Each("labels"): None}`."""

    path: str


def value(path: str) -> Expression:
    """Return the placeholder of a value.

    >>> value("workers.min").text
    'toJson .Values.workers.min'
    """
    return Expression(f"toJson .Values.{path}")


def less(low: str, high: str) -> Expression:
    """Return the placeholder that is true if one value is less than another."""
    return Expression(f"lt (int .Values.{low}) (int .Values.{high})")


def literal(text: str) -> str:
    """Return a text in which Helm sees no template, for the templates of others.

    >>> literal("job {{ $labels.job }}")
    'job {{ `{{` }} $labels.job }}'
    """
    return text.replace(BRACES, "{{ `{{` }}")
