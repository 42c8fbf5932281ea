"""Measurements of workers, in windows."""
