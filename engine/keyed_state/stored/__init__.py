"""Keyed state in a backend: LMDB or a server."""
