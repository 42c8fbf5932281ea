"""The operators: one kind per file, each a small state machine over batches."""
