"""Restoring a job: what a manifest gives to each task, who owns a run, and which checkpoints are kept."""
