"""Operators that process one row or batch at a time."""
