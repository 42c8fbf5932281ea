"""Keyed state in checkpoints: whole snapshots, and chains of changes."""
