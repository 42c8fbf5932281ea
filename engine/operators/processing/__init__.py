"""Operators that call a user's function with keyed state."""
