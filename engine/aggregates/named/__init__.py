"""Aggregates as users write them."""
