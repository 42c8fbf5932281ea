"""Synthetic streams whose rows are functions of their number."""
