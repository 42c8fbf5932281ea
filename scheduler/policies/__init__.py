"""Scaling policies: pure functions from a snapshot of the dataflow to a decision."""
