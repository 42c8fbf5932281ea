"""Aggregates: running, by window, by session and by rows."""
