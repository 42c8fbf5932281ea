"""Keyed state in memory."""
