"""The oracle: a plain, sequential evaluation of a flow. Importing this package registers an evaluation for every operator."""

from __future__ import annotations

from . import (  # noqa: F401 -- each registers with the oracle
    branch,
    deduplicate,
    explode,
    list_aggregates,
    lookup,
    map_async,
    times,
    two_windows,
    windows,
)
