"""Aggregates of numbers: counts, sums, means, variances, extremes."""
