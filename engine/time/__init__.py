"""Event time: columns of it, durations and windows."""
