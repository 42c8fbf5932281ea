"""Operators get more or fewer workers, and jobs more or fewer nodes: by hand or by a policy of `scaling/`."""
