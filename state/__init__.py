"""Hashes, slots, backends and files for keyed state: the lowest layer."""
