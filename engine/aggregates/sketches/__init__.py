"""Aggregates by sketches, within a stated error."""
