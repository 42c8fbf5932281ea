"""Chaos on a real cluster: scripts of accidents and changes."""
