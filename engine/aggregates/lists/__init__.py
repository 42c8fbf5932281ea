"""Aggregates that keep values or rows of each key."""
