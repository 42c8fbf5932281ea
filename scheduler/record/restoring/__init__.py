"""Restoring a job: the state of each task, the owner of a run, and the checkpoints to keep."""
