"""NexMark's queries as dataflows, and as SQL for DuckDB."""

from __future__ import annotations

from .events import Query
from .groups import q15, q16, q17, q18, q19
from .joins import q3, q4, q6, q9, q20
from .plain import q0, q1, q2, q10, q13, q14, q21, q22
from .windows import q5, q7, q8, q11, q12

_IN_ORDER: tuple[Query, ...] = (
    q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22,
)  # fmt: skip

QUERIES: dict[str, Query] = {f"q{number}": query for number, query in enumerate(_IN_ORDER)}
"""All queries by name, in order."""
