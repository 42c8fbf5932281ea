"""Operators with two inputs, and lookups."""
