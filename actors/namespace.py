"""Ray's namespace of all actors of all jobs."""

from __future__ import annotations

NAMESPACE = "evenflow"
