"""Expressions over columns: the tree that a user writes, its binding to types, and its evaluation by Arrow's kernels."""
