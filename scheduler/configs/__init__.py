"""Settings of a job, checked when they are made."""
