"""Chaos runs: processes of a running job are killed, and its results must not change."""

from __future__ import annotations

from .chaos import Chaos

__all__ = ["Chaos"]
