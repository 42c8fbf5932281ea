"""Joins: the rows that each side keeps, their index by key and time, and the columns of the results."""
