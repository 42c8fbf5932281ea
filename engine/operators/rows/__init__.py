"""Operators that look at one row or batch at a time."""
