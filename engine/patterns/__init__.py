"""Patterns of rows: their steps, and the search for rows that match them."""
