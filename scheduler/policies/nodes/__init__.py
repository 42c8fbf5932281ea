"""Nodes of a cluster: where workers go, and which nodes a job should gain or return."""
