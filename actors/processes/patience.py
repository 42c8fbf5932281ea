"""How long the end of a job may take: the driver waits for its coordinator, and that for workers and storage."""

from __future__ import annotations

LEAVE_TIMEOUT = 5.0
"""Seconds that workers have to leave after the end of the job; a user's function that takes longer is cut off."""

STORAGE_PATIENCE = 10.0
"""Seconds that storage has, once the job has ended, to carry out what it was told before."""
