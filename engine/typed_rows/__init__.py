"""Rows as objects of a user's class: the columns that its annotations stand for, and conversions in both directions."""
