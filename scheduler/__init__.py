"""The job as a state machine without I/O: deployment, checkpoints, control messages, and the metrics that come back."""
