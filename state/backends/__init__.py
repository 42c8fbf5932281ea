"""State backends: memory, LMDB files, or a server that speaks the Redis protocol."""
