"""Faults that a simulation injects."""
