"""Where keyed state lies: in memory, in LMDB files, or in a server that speaks the Redis protocol."""
