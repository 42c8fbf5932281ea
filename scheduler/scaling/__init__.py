"""Policies of elastic scaling: from what a dataflow does to how many workers each operator should have."""
