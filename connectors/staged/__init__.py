"""The base of sinks that stage rows in the checkpoint folder until their checkpoint completes."""
