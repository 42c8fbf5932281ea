"""Stands before pandas in the path of a cluster's processes. evenflow doesn't need it, and Arrow loads it where it finds it."""

from __future__ import annotations

raise ImportError("the workers of this cluster have no pandas")
