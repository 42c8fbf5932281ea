"""Clocks of a job, of a task and of single measurements."""
