"""The job's state machine, and its answers to requests."""
