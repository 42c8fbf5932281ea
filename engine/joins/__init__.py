"""Joins: the rows that each side keeps, how they are found by key and time, and the rows that come out."""
